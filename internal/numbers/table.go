// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package numbers

import "github.com/tokenpulse/tokenpulse/internal/names"

// Table has the row of each number.
//
// With `detail: standard`, a span has at most 20 attributes of token_latency, which TestDetail_StandardIsAtMostTwentyAttributes checks.
// They are used up: a new number that most spans have is Full, or another one becomes it.
var Table = [Count]Number{
	TimeToFirstToken: {
		Attribute: "tokenpulse.time_to_first_token", Unit: Seconds, Judged: true,
		Metric: Metric{"tokenpulse.time_to_first_token", Seconds, "Time from the request's start to its first token, on any channel."},
		Bounds: firstTokenBounds, Percentiles: true,
	},
	TimeToFirstOutputToken: {
		Attribute: "tokenpulse.time_to_first_output_token", Unit: Seconds, Judged: true,
		Metric: Metric{"tokenpulse.time_to_first_output_token", Seconds, "Time from the request's start to its first token that is not reasoning."},
		Bounds: firstTokenBounds, Off: true,
	},
	TimePerOutputToken: {
		Attribute: "tokenpulse.time_per_output_token", Unit: Seconds, Judged: true,
		Metric: Metric{"tokenpulse.time_per_output_token", Seconds, "Mean time per output token of a request, after its first token."},
		Bounds: gapBounds, Percentiles: true,
	},
	RequestDuration: {
		Attribute: "tokenpulse.request.duration", Unit: Seconds, Judged: true,
		Metric: Metric{"tokenpulse.request.duration", Seconds, "Time from the request's start to its end."},
		Bounds: durationBounds, Percentiles: true,
	},
	QueueDuration: {
		Attribute: "tokenpulse.queue.duration", Unit: Seconds, Judged: true, Metric: phase, Phase: names.PhaseQueue, Bounds: phaseBounds,
	},
	PrefillDuration: {
		Attribute: "tokenpulse.prefill.duration", Unit: Seconds, Judged: true, Metric: phase, Phase: names.PhasePrefill, Bounds: phaseBounds,
	},
	DecodeDuration: {
		Attribute: "tokenpulse.decode.duration", Unit: Seconds, Judged: true, Metric: phase, Phase: names.PhaseDecode, Bounds: phaseBounds,
	},
	NetworkDuration: {
		Attribute: "tokenpulse.network.duration", Unit: Seconds, Judged: true, Metric: phase, Phase: names.PhaseNetwork, Bounds: phaseBounds,
		Meaning: "[Network](definitions.md#numbers-of-a-trace). Needs `join`, or a service that reports its own time to first token to token_tap.",
	},
	DecodeShare: {
		Attribute: "tokenpulse.decode.share", Unit: Ratio, Full: true, Judged: true,
	},
	OutputTokenRate: {
		Attribute: "tokenpulse.output_token_rate", Unit: PerSecond, Full: true, Instead: "time_per_output_token",
		Metric: Metric{"tokenpulse.output_token_rate", PerSecond, "Output tokens per second of a request, after its first token."},
		Bounds: rateBounds, Off: true,
	},
	RequestTokenRate: {
		Attribute: "tokenpulse.request_token_rate", Unit: PerSecond, Full: true, Instead: "request.duration",
		Metric: Metric{"tokenpulse.request_token_rate", PerSecond, "Output tokens per second of a whole request: its output tokens divided by its duration."},
		Bounds: rateBounds, Off: true,
	},
	PrefillTokenRate: {
		Attribute: "tokenpulse.prefill_token_rate", Unit: PerSecond, Full: true, Instead: "prefill.duration",
		Metric: Metric{"tokenpulse.prefill_token_rate", PerSecond, "Input tokens that were not cached, per second of prefill. Needs `detail: full` of token_latency."},
		Bounds: prefillRateBounds, Off: true,
	},
	TimePerTokenFrom0:    ofPosition("0", "0-10"),
	TimePerTokenFrom10:   ofPosition("10", "10-100"),
	TimePerTokenFrom100:  ofPosition("100", "100-1000"),
	TimePerTokenFrom1000: ofPosition("1000", "1000+"),
	TransferDuration: {
		Attribute: "tokenpulse.transfer.duration", Unit: Seconds, Judged: true, Metric: phase, Phase: names.PhaseTransfer, Bounds: phaseBounds,
		Meaning: "[Transfer](definitions.md#prefill-and-decode-on-two-engines) of the KV cache between two engines. Needs `join`, or an engine that reports it.",
	},
	TimeToFirstAudio: {
		Attribute: "tokenpulse.time_to_first_audio", Unit: Seconds, Judged: true,
		Metric: Metric{"tokenpulse.time_to_first_audio", Seconds, "Time from the request's start to its first chunk of audio."},
		Bounds: firstTokenBounds,
	},
	RealTimeFactor: {
		Attribute: "tokenpulse.audio.real_time_factor", Unit: Ratio, Instead: "inter_audio_chunk_latency.max",
		Metric: Metric{"tokenpulse.audio.real_time_factor", Ratio, "Seconds of audio that arrived per second, from the first to the last chunk of audio. Under 1, playback has to wait."},
		Bounds: realTimeBounds, Off: true,
	},
	TimeToAnswer: {
		Attribute: "tokenpulse.trace.time_to_answer", Unit: Seconds, Judged: true,
		Metric: Metric{"tokenpulse.trace.time_to_answer", Seconds, "Time from the start of a trace's root span to the first output token of its last request. Needs `roll_up`."},
		Bounds: answerBounds,
	},
	InterTokenLatency: {
		Attribute: "tokenpulse.inter_token_latency.sketch",
		Meaning:   "Inter-token latencies as a mergeable histogram, encoded by `internal/sketch`. Missing with `distribution: drop`.",
		Metric:    Metric{"tokenpulse.inter_token_latency", Seconds, "Time between tokens: one value per token, which is the gap before its chunk divided by the tokens of the chunk."},
		Bounds:    gapBounds, Percentiles: true,
	},
	InterChunkLatency: {
		Attribute: "tokenpulse.inter_chunk_latency.sketch", Full: true,
		Meaning: "Inter-chunk latencies likewise. Missing where they equal the inter-token latencies.",
		Metric:  Metric{"tokenpulse.inter_chunk_latency", Seconds, "Time between chunks that hold tokens: one value per chunk. Needs `detail: full` of token_latency."},
		Bounds:  gapBounds, Off: true,
	},
	TokensPerChunk: {
		Attribute: "tokenpulse.tokens_per_chunk.sketch", Full: true,
		Meaning: "Tokens of each chunk likewise, if they are known.",
		Metric:  Metric{"tokenpulse.tokens_per_chunk", Tokens, "Tokens of each chunk: one value per chunk. Needs `detail: full` of token_latency."},
		Bounds:  chunkBounds, Off: true,
	},
	InterAudioLatency: {
		Attribute: "tokenpulse.inter_audio_chunk_latency.sketch",
		Meaning:   "Times between chunks of audio likewise.",
		Metric:    Metric{"tokenpulse.inter_audio_chunk_latency", Seconds, "Time between chunks of audio: one value per chunk."},
		Bounds:    gapBounds, Off: true,
	},

	StallDuration: {
		Attribute: "tokenpulse.stall.duration", Unit: Seconds, Judged: true,
		Metric: Metric{"tokenpulse.stall.duration", Seconds, "Sum of the gaps that are stalls."},
	},
	FluidityIndex: {
		Attribute: "tokenpulse.fluidity_index", Unit: Ratio, Instead: "inter_token_latency.p99",
	},
	StallCount: {
		Attribute: "tokenpulse.stall.count", Unit: "{stall}", Whole: true, Judged: true,
		Metric: Metric{"tokenpulse.stalls", "{stall}", "Gaps between chunks that exceed the stall threshold."},
	},
	ChunkCount: {
		Attribute: "tokenpulse.chunk.count", Unit: "{chunk}", Whole: true, Judged: true,
	},
	TokenCount: {
		Attribute: "tokenpulse.token_count", Unit: Tokens, Whole: true,
	},
	TokenCountMismatch: {
		Attribute: "tokenpulse.token_count.mismatch", Unit: Tokens, Whole: true,
	},
	ClockAnomalies: {
		Attribute: "tokenpulse.clock.anomalies", Unit: "{step}", Whole: true, Judged: true,
	},
	CachedInputShare: {
		Attribute: "tokenpulse.cached_input.share", Unit: Ratio,
	},
	SpeculativeAcceptedTokens: ofSpeculation("accepted_tokens", "Draft tokens of speculative decoding that the model accepted"),
	SpeculativeDraftTokens:    ofSpeculation("draft_tokens", "Draft tokens of speculative decoding"),
	AudioDuration: {
		Attribute: "tokenpulse.audio.duration", Unit: Seconds,
		Meaning: "Seconds of audio in the answer. Missing unless the format says its length.",
	},
	AudioChunkCount: {
		Attribute: "tokenpulse.audio.chunk.count", Unit: "{chunk}", Whole: true,
		Meaning: "Chunks of audio. Missing without audio.",
	},

	InputTokens: {
		Attribute: names.GenAIInputTokens, Unit: Tokens, Whole: true, Metric: tokens, Type: names.TokensInput,
		Meaning: usage,
	},
	OutputTokens: {
		Attribute: names.GenAIOutputTokens, Unit: Tokens, Whole: true, Metric: tokens, Type: names.TokensOutput,
		Meaning: usage,
	},
	ReasoningTokens: {
		Attribute: names.GenAIReasoningTokens, Unit: Tokens, Whole: true, Metric: tokens, Type: names.TokensReasoning,
		Meaning: usage,
	},
	CachedInputTokens: {
		Attribute: names.GenAICacheReadInputTokens, Unit: Tokens, Whole: true, Metric: tokens, Type: names.TokensCachedInput,
		Meaning: usage,
	},
	CacheWriteInputTokens: {
		Attribute: names.GenAICacheWriteInputTokens, Unit: Tokens, Whole: true, Metric: tokens, Type: names.TokensCacheWrite,
		Meaning: usage,
	},
	TextInputTokens:        ofModality(names.ModalityText, names.TokensInput, "input_tokens"),
	TextOutputTokens:       ofModality(names.ModalityText, names.TokensOutput, "output_tokens"),
	TextCachedInputTokens:  ofModality(names.ModalityText, names.TokensCachedInput, "cache_read.input_tokens"),
	ImageInputTokens:       ofModality(names.ModalityImage, names.TokensInput, "input_tokens"),
	ImageOutputTokens:      ofModality(names.ModalityImage, names.TokensOutput, "output_tokens"),
	ImageCachedInputTokens: ofModality(names.ModalityImage, names.TokensCachedInput, "cache_read.input_tokens"),
	AudioInputTokens:       ofModality(names.ModalityAudio, names.TokensInput, "input_tokens"),
	AudioOutputTokens:      ofModality(names.ModalityAudio, names.TokensOutput, "output_tokens"),
	AudioCachedInputTokens: ofModality(names.ModalityAudio, names.TokensCachedInput, "cache_read.input_tokens"),

	InterTokenMean: ofGaps("inter_token_latency.mean", true),
	InterTokenP50:  ofGaps("inter_token_latency.p50", false),
	InterTokenP95:  ofGaps("inter_token_latency.p95", false),
	InterTokenP99:  ofGaps("inter_token_latency.p99", false),
	InterTokenMax:  ofGaps("inter_token_latency.max", false),
	InterChunkMean: ofGaps("inter_chunk_latency.mean", true),
	InterChunkP50:  ofGaps("inter_chunk_latency.p50", true),
	InterChunkP95:  ofGaps("inter_chunk_latency.p95", true),
	InterChunkP99:  ofGaps("inter_chunk_latency.p99", true),
	InterChunkMax:  ofGaps("inter_chunk_latency.max", true),
	InterAudioMean: ofGaps("inter_audio_chunk_latency.mean", true),
	InterAudioP50:  ofGaps("inter_audio_chunk_latency.p50", true),
	InterAudioP95:  ofGaps("inter_audio_chunk_latency.p95", true),
	InterAudioP99:  ofGaps("inter_audio_chunk_latency.p99", true),
	InterAudioMax:  ofGaps("inter_audio_chunk_latency.max", false),
}

// usage is the meaning of the attributes with reported tokens.
const usage = "Reported tokens. Output includes reasoning."

// ofGaps returns the row of a statistic of the gaps of a request.
func ofGaps(name string, full bool) Number {
	return Number{Attribute: names.Prefix + name, Unit: Seconds, Full: full, Judged: true}
}

// ofPosition returns the row of the time per token of a band of positions.
func ofPosition(from, band string) Number {
	return Number{
		Attribute: names.Prefix + "time_per_token.from_" + from, Unit: Seconds, Full: true, Judged: true,
		Metric:   Metric{"tokenpulse.time_per_token", Seconds, "Mean time per token of the tokens at some positions of an answer: `position` is the number of tokens before them. Needs `detail: full` of token_latency."},
		Position: band, Bounds: gapBounds, Off: true,
	}
}

// ofSpeculation returns the row of a count of speculative decoding.
func ofSpeculation(name, meaning string) Number {
	attribute := names.Prefix + "speculative." + name
	return Number{
		Attribute: attribute, Unit: Tokens, Whole: true, Full: true,
		Meaning: "Speculative decoding: draft tokens, and those that the model accepted. Missing unless the service reports them to token_tap.",
		Metric:  Metric{attribute, Tokens, meaning + ". Needs `detail: full` of token_latency."}, Off: true,
	}
}

// ofModality returns the row of the tokens of a type that are of one modality.
func ofModality(modality, tokenType, name string) Number {
	return Number{
		Attribute: "gen_ai.usage." + modality + "." + name, Unit: Tokens, Whole: true, Type: tokenType, Modality: modality,
		Meaning: "Reported `" + tokenType + "` tokens of modality " + modality + ". Missing when 0.",
	}
}

func init() {
	for id := range Count {
		Table[id].ID = id
	}
}

// Metrics that several numbers share.
var (
	phase = Metric{
		"tokenpulse.phase.duration", Seconds, "Time that a request spent in a phase: waiting for the engine (queue), until its first token (prefill), " +
			"from its first to its last token (decode), between an observer and the engine until the first token (network, needs `join`), " +
			"and between the engines of prefill and decode until the first token (transfer).",
	}
	tokens = Metric{"tokenpulse.tokens", Tokens, "Tokens. Output includes reasoning, input includes tokens read from a cache and written to it."}
)

// Classic bucket bounds for tokens, in seconds unless noted. Each bound is a sample of
// every series, so each histogram has bounds for its own range, close where objectives
// are usual. Native buckets need none.
var (
	// gapBounds are for the time between tokens: a decode step takes 5 to 100 ms, and
	// objectives are 15 to 200 ms.
	gapBounds = []float64{.001, .005, .01, .015, .02, .03, .04, .05, .075, .1, .2, .5, 1, 5}
	// firstTokenBounds are for the wait for a token: objectives are 0.1 to 6 s, an
	// overloaded queue takes minutes.
	firstTokenBounds = []float64{.001, .05, .1, .2, .3, .5, .75, 1, 2, 3, 5, 10, 30, 120}
	// durationBounds are for whole requests, from cached answers to agents' long ones.
	durationBounds = []float64{.001, .1, .25, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600}
	// answerBounds are for agents, whose answers take several requests.
	answerBounds = []float64{.001, .5, 1, 2, 5, 10, 30, 60, 120, 600}
	// phaseBounds are few, because each series has them once per phase. They show which
	// phase a request spent its time in.
	phaseBounds = []float64{.001, .01, .05, .1, .5, 1, 2, 5, 20, 120}
	// rateBounds are in tokens per second.
	rateBounds = []float64{1, 5, 10, 20, 30, 40, 50, 75, 100, 150, 200, 500, 1000, 5000}
	// prefillRateBounds, too: from a laptop to several accelerators.
	prefillRateBounds = []float64{10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 20_000, 50_000, 100_000, 250_000, 1_000_000}
	// realTimeBounds are close around 1, below which playback has to wait.
	realTimeBounds = []float64{.25, .5, .75, .9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50}
	// chunkBounds are in tokens: one by one, speculative decoding, providers that bundle, whole paragraphs.
	chunkBounds = []float64{1, 2, 3, 4, 5, 6, 8, 10, 16, 32, 64, 128, 256, 1024}
)
