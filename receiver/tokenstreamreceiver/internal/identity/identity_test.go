// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/wire"
)

// list encodes attributes of text: key, value, key, value.
func list(pairs ...string) []byte {
	message := &commonv1.KeyValueList{}
	for i := 0; i < len(pairs); i += 2 {
		message.Values = append(message.Values, &commonv1.KeyValue{
			Key: pairs[i], Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: pairs[i+1]}},
		})
	}
	encoded, err := proto.Marshal(message)
	if err != nil {
		panic(err)
	}
	return encoded
}

// describe reads the attributes model and tenant like a span: the last one of a key wins.
func describe(s *Stream) *string {
	values := map[string]string{}
	for i, encoded := range [][]byte{s.Resource, s.Attributes, s.EndAttributes} {
		for a := wire.WalkAttributes(encoded); a.Next(); {
			if string(a.Key) == "model" || string(a.Key) == "tenant" {
				values[fmt.Sprint(min(i, 1), string(a.Key))] = fmt.Sprint(a.Value.Kind, string(a.Value.Bytes), a.Value.Bits)
			}
		}
	}
	description := fmt.Sprint(s.Vantage, values)
	return &description
}

func newTestCache(limit int) *Cache[string] {
	return New([]string{"model", "tenant", "model"}, limit, describe)
}

func TestFind_SharesTheValueOfStreamsThatDifferInOtherAttributes(t *testing.T) {
	c := newTestCache(100)
	first := c.Find(&Stream{Attributes: list("model", "a", "user", "0")})
	for i := range 1000 {
		require.Same(t, first, c.Find(&Stream{Attributes: list("model", "a", "user", strconv.Itoa(i))}))
	}
	require.Equal(t, int64(1), c.Resolved())
	require.Zero(t, c.Evicted(), "streams that come once are remembered")
}

func TestFind_RemembersBytesOnSecondSight(t *testing.T) {
	c := newTestCache(100)
	s := &Stream{Attributes: list("model", "a")}
	for want := range 3 {
		require.Len(t, c.byBytes.newer, max(0, want-1), "before sight %d", want+1)
		c.Find(s)
	}
	require.Len(t, c.byBytes.newer, 1)
}

// Senders with as many combinations of attributes as the cache holds come in turn.
func TestFind_RemembersBytesOfManySenders(t *testing.T) {
	const limit = 10_000
	c := newTestCache(limit)
	for range 3 {
		for i := range limit / 2 {
			c.Find(&Stream{Attributes: list("model", strconv.Itoa(i))})
		}
	}
	require.Greater(t, len(c.byBytes.newer), limit/2*8/10)
}

func TestFind_KeepsNoReferenceToTheStream(t *testing.T) {
	c := newTestCache(100)
	for range 3 {
		attributes := list("model", "a")
		c.Find(&Stream{Attributes: attributes})
		clear(attributes)
	}
	require.Equal(t, *describe(&Stream{Attributes: list("model", "a")}), *c.Find(&Stream{Attributes: list("model", "a")}))
}

func TestFind_StaysWithinItsLimits(t *testing.T) {
	const limit = 64
	c := newTestCache(limit)
	for range 2 {
		for i := range 10 * limit {
			s := &Stream{Attributes: list("model", strconv.Itoa(i))}
			for range 3 {
				require.Equal(t, *describe(s), *c.Find(s))
			}
		}
	}
	require.LessOrEqual(t, len(c.byBytes.newer)+len(c.byBytes.older), limit)
	require.LessOrEqual(t, len(c.byValues.newer)+len(c.byValues.older), limit)
	require.Positive(t, c.Evicted())
	large := &Stream{Attributes: list("model", strings.Repeat("x", maxEntry))}
	before := len(c.byBytes.newer)
	for range 3 {
		require.Equal(t, *describe(large), *c.Find(large))
	}
	require.Len(t, c.byBytes.newer, before, "a large stream is remembered")
}

// A hash has 64 bits, so the collision is made by hand.
func TestFind_ComparesTheBytesOfAHit(t *testing.T) {
	c := newTestCache(100)
	s, other := &Stream{Attributes: list("model", "a")}, &Stream{Attributes: list("model", "b")}
	c.byBytes.put(s.hash(c.seed), &encoded[string]{other.clone(), describe(other)})
	require.Equal(t, *describe(s), *c.Find(s))
}

func TestFind_DoesNotRememberLargeValues(t *testing.T) {
	c := newTestCache(100)
	large := &Stream{Attributes: list("model", strings.Repeat("x", maxEntry))}
	require.Equal(t, *describe(large), *c.Find(large))
	require.Empty(t, c.byValues.newer)
}

// A sender that stays is resolved once, however many others come and go.
func TestFind_KeepsValuesThatAreUsed(t *testing.T) {
	const limit = 64
	c := newTestCache(limit)
	attributes := func(user string) *Stream { return &Stream{Attributes: list("model", "stays", "user", user)} }
	first := c.Find(attributes(""))
	for i := range 10 * limit {
		c.Find(&Stream{Attributes: list("model", strconv.Itoa(i))})
		require.Same(t, first, c.Find(attributes(strconv.Itoa(i))), "after %d others", i+1)
	}
	require.Positive(t, c.Evicted())
}

// Values are what they are without a cache, whatever came before.
func TestFind_EqualsResolve(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(n int) []byte {
		var pairs []string
		for range random.IntN(n) {
			pairs = append(pairs, []string{"model", "tenant", "user", ""}[random.IntN(4)], []string{"", "a", "b", "ab"}[random.IntN(4)])
		}
		return list(pairs...)
	}
	c := newTestCache(50)
	for range 20_000 {
		s := &Stream{Resource: pick(3), Attributes: pick(4), EndAttributes: pick(2), Vantage: byte(random.IntN(3))}
		require.Equal(t, *describe(s), *c.Find(s))
	}
}
