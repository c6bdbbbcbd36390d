// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
)

// reliability has the tests of each fault and attack on docs/reliability.md, by the first cell of its row. In
// addition, TestSimulation compares receiver, processor and token_sli with a plain model after every step under seeded
// faults (make suite-simulation ARGS=-seeds=5000), and TestAccounting_SelfMetricsLeaveNoRemainderThroughFaults checks
// that the self-metrics add up.
var reliability = map[string][]string{
	"`kill -9`, crash": {"TestKilledCollector_KeepsEveryAcknowledgedEventOfOpenStreams", "TestKilledCollector_RestoresErrorBudgetsFromStorage"},
	"SIGTERM, reload, also while an exporter blocks":                                           {"TestReload_OpenStreamsGoOnWithStorage", "TestShutdown_WithDeadline"},
	"the pipeline refuses data, or expired streams":                                            {"TestSimulation", "TestExpiry_BacksOffAndDropsRefusedStreams"},
	"one consumer of several refuses; a lost answer; a stream sent five times":                 {"TestRecord_RedeliveredRequestsCountOnce", "TestSimulation"},
	"a flush of metrics is refused or lost; a producer restarts or is older than the exporter": {"TestFlush_SendsRefusedDataAgain", "TestRead_AddsUpToTheRequestsOfAllProducers", "TestExpire_ForgottenStreamCountsFromItsNextPoint"},
	"memory is full, `memory_limiter` refuses":                                                 {"TestMemoryLimiter_Recovers", "TestMemory_EndsAreAcceptedAtTheLimit"},
	"the clock steps": {"TestClock_StepsOfHours", "TestRecord_ClockStepBackLosesNothing"},
	"full or damaged storage, other `dimensions`":         {"TestStorage_RefusesChangesThatCannotBeStored", "TestOpen_SkipsWhatIsDamaged", "TestStore_StartsEmptyAfterADimensionWasRenamed"},
	"a sender stops in the middle, or sends out of order": {"TestSimulation", "TestChunks_OrderAndRepeats"},
	"a slow pipeline": {"TestSlowPipeline_IsNotATimeout", "TestTapHostile_BlockedPipelineDoesNotDelayTraffic"},
	"clients and upstreams of `token_tap` break off anywhere":                {"TestSoak_TapLeavesNothingBehind", "TestSpan_ClientThatLeavesCancels"},
	"streams spread over several Collectors":                                 {"TestExampleMetricsGateway_AddsUpTheAgents", "TestRead_AddsUpToTheRequestsOfAllProducers"},
	"idle, cancelled or reset calls and bodies":                              {"TestCanceledRequests_LeaveNothingBehind", "TestStream_IdleCallEnds"},
	"bodies that never end, arrive byte by byte, or never come":              {"TestMemory_DeclaredBodiesThatNeverArrive", "TestDrippingBody_IsClosed", "TestRefusal_NoConnectionWaitsForABodyForEver"},
	"decompression bombs":                                                    {"TestLiveBody_InflationIsLimited", "FuzzDecompression"},
	"malformed messages, also many":                                          {"TestLines_RejectedOnesEndBody", "TestNDJSON_RejectsOnlyBadLine"},
	"one client takes what all share: streams, series, scrapes, bodies":      {"TestMaxSharePerClient_KeepsHalfForOthers", "TestShares_LeaveHalfToOthers", "TestSeries_AClientOpensItsShareOnceHalfOfThemAreOpen"},
	"one resource shared by many streams":                                    {"TestResource_CountsOnce", "TestResource_IsShared"},
	"invented models, services or SLO names":                                 {"TestConsume_ManyModelsGoToTheOverflowSeries", "TestRecord_ObjectivesKeepTheirPlaces"},
	"forged numbers on spans":                                                {"TestRead_LeavesOutGapsThatTheSpanCannotHave", "FuzzRead"},
	"forged `tokenpulse.*` attributes, also to hide requests":                {"TestAttributes_SendersCannotSetOurs", "TestRecord_AggregatedRequestsCountNowhere"},
	"malformed timelines, sketches and metrics, or many of them":             {"TestChunkOffsets_Unreadable", "TestRead_IgnoresWhatItCannotCount", "TestRead_StreamsAreLimited"},
	"many or slow readers of `/metrics`":                                     {"TestScrape_SlowReadersAreCutOff", "TestScrape_SlowReadersDoNotBlockOthers"},
	"bombs and garbage in answers through `token_tap`":                       {"TestTapHostile_PassesUnchangedInBoundedMemory", "FuzzDecoder"},
	"requests that two servers divide differently":                           {"TestTapSecurity_RequestsAreNotSmuggled", "TestRefusal_LengthAndChunksCannotSmuggleARequest"},
	"foreign web pages and DNS rebinding":                                    {"TestServer_RefusesForeignPages", "TestServer_PagesOfOtherOriginsChangeNothing"},
	"questions for ever more pairs at `/api/v1/compare`":                     {"TestCompare_PairsAreLimited", "TestStore_IsBounded"},
	"streams that start and never go on, until memory is scarce":             {"TestMemoryPressure_EndsWithinAMinuteAfterStreamsExpire", "TestMemoryPressure_StreamsWithoutAChunkGoFirst"},
	"upstreams that send statuses HTTP does not have":                        {"TestRefusal_StatusesThatHTTPDoesNotHave"},
	"`token_tap` as a way to other hosts":                                    {"TestTapSecurity_IsNoOpenProxy", "TestRefusal_IsNoOpenProxy"},
	"credentials in requests through `token_tap`, to find them in telemetry": {"TestTapSecurity_CredentialsAreNeitherKeptNorLogged", "TestSpan_HoldsNoSecretAndNoText"},
	"text in events, error types and finish reasons, to leak it":             {"TestPut_CategoriesHoldNoText", "TestSpan_FreeTextOfAnUpstreamIsNoCategory"},
	"control characters in names, shown in a terminal":                       {"TestScrape_EscapesHostileNamesFromTheWire", "TestWrite_EscapesHostileNames"},
}

// Every fault and attack has tests, and each test exists.
func TestReliabilityPage_HasTestsForEachRow(t *testing.T) {
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	sources(t, func(name string) bool { return strings.HasSuffix(name, "_test.go") }, func(_ string, content []byte) {
		for _, found := range function.FindAllSubmatch(content, -1) {
			declared[string(found[1])] = true
		}
	})
	_, faults, found := strings.Cut(markdown.Read(t, "docs/reliability.md"), "## Faults\n")
	require.True(t, found)
	rows := markdown.TableRows(faults)
	require.Greater(t, len(rows), 30)
	named := map[string]bool{}
	for _, row := range rows {
		situation := strings.TrimSpace(row[0])
		named[situation] = true
		if len(reliability[situation]) == 0 {
			t.Errorf("no test is named for the row %q of docs/reliability.md", situation)
		}
	}
	for row, tests := range reliability {
		if !named[row] {
			t.Errorf("docs/reliability.md has no row %q", row)
		}
		for _, test := range tests {
			if !declared[test] {
				t.Errorf("no test file declares %s, named for %q", test, row)
			}
		}
	}
	for _, test := range []string{"TestSimulation", "TestAccounting_SelfMetricsLeaveNoRemainderThroughFaults"} {
		require.True(t, declared[test], test)
	}
}
