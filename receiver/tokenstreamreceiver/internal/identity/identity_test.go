// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protowire"
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

// describe reads the attributes model and tenant like a span: the last one of a key wins. It does not
// see the cache's keys.
func describe(vantage byte, resource []byte, lists ...[]byte) string {
	values := map[string]string{}
	removed := [2]int{}
	for i, encoded := range append([][]byte{resource}, lists...) {
		for a := wire.WalkAttributes(encoded); a.Next(); {
			switch key := string(a.Key); {
			case key == "model" || key == "tenant":
				values[fmt.Sprint(min(i, 1), key)] = fmt.Sprint(a.Value.Kind, string(a.Value.Bytes), a.Value.Bits)
			case strings.HasPrefix(key, "tokenpulse."):
				removed[min(i, 1)]++
			}
		}
	}
	return fmt.Sprint(vantage, values, removed)
}

// testCache is a cache of descriptions, with a finder.
type testCache struct {
	*Cache[string]
	Finder[string]
}

func newTestCache(limit int) *testCache {
	c := New([]string{"model", "tenant", "model", "tokenpulse.vantage"}, limit, func(s *Stream) *string {
		description := describe(s.Vantage, s.Resource, s.Attributes)
		return &description
	})
	return &testCache{c, c.NewFinder()}
}

// of returns the value of a stream with attributes at its start.
func (c *testCache) of(pairs ...string) *string {
	return c.Find(0, nil, list(pairs...), nil)
}

func TestFind_SharesTheValueOfStreamsThatDifferInOtherAttributes(t *testing.T) {
	c := newTestCache(100)
	first := c.of("model", "a", "user", "0")
	for i := range 1000 {
		require.Same(t, first, c.of("user", strconv.Itoa(i), "model", "a", "node", strconv.Itoa(i)))
	}
	require.Equal(t, int64(1), c.Resolved())
	require.Zero(t, c.Evicted())
}

func TestFind_KeepsNoReferenceToTheStream(t *testing.T) {
	c := newTestCache(100)
	attributes := list("model", "a")
	first := c.Find(0, nil, attributes, nil)
	clear(attributes)
	require.Same(t, first, c.of("model", "a"))
}

func TestFind_StaysWithinItsLimits(t *testing.T) {
	const limit = 64
	c := newTestCache(limit)
	for range 2 {
		for i := range 10 * limit {
			c.of("model", strconv.Itoa(i))
		}
	}
	require.LessOrEqual(t, len(c.values.newer)+len(c.values.older), limit)
	require.Positive(t, c.Evicted())
	before, large := len(c.values.newer), strings.Repeat("x", maxKey)
	for range 3 {
		require.Equal(t, describe(0, nil, list("model", large)), *c.of("model", large))
	}
	require.Len(t, c.values.newer, before, "a large key is remembered")
	c.Reset()
	require.Less(t, cap(c.key), 100)
}

// A sender that stays is resolved once, however many others come and go.
func TestFind_KeepsValuesThatAreUsed(t *testing.T) {
	const limit = 64
	c := newTestCache(limit)
	first := c.of("model", "stays")
	for i := range 10 * limit {
		c.of("model", strconv.Itoa(i))
		require.Same(t, first, c.of("model", "stays", "user", strconv.Itoa(i)), "after %d others", i+1)
	}
	require.Positive(t, c.Evicted())
}

func TestFind_RejectsInvalidAttributes(t *testing.T) {
	text := func(key, value string) []byte {
		keyValue := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
		content := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), value)
		keyValue = protowire.AppendBytes(protowire.AppendTag(keyValue, 2, protowire.BytesType), content)
		return protowire.AppendBytes([]byte{wire.InList}, keyValue)
	}
	for name, attributes := range map[string][]byte{
		"value that is read":  text("model", "\xff"),
		"value of another":    text("user", "\xff"),
		"key":                 text("\xff", "a"),
		"value of ours":       text("tokenpulse.x", "\xff"),
		"truncated":           text("model", "a")[:10],
		"another field":       protowire.AppendVarint(protowire.AppendTag(text("model", "a"), 5, protowire.VarintType), 1),
		"too many":            bytes.Repeat(text("user", "a"), 1025),
		"too many that count": bytes.Repeat(text("model", "a"), 1025),
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCache(100)
			for range 2 {
				require.Nil(t, c.Find(0, nil, attributes, nil))
				require.Nil(t, c.Find(0, nil, text("model", "a"), attributes))
			}
			require.Zero(t, c.Resolved())
		})
	}
	c := newTestCache(100)
	many := bytes.Repeat(list("user", "a"), 1025)
	for range 2 {
		require.Nil(t, c.Find(0, many, nil, nil), "a resource with too many")
	}
	c.Reset()
	require.NotNil(t, c.of("model", "a"))
}

// Values are what they are without a cache, whatever came before.
func TestFind_EqualsResolve(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(n int) []byte {
		var pairs []string
		for range random.IntN(n) {
			pairs = append(pairs, []string{"model", "tenant", "user", "", "tokenpulse.vantage"}[random.IntN(5)], []string{"", "a", "b", "ab"}[random.IntN(4)])
		}
		return list(pairs...)
	}
	c := newTestCache(50)
	var resource []byte
	for i := range 20_000 {
		if random.IntN(3) == 0 {
			resource = pick(3)
		}
		if i%5 == 0 {
			c.Reset()
		}
		start, end, vantage := pick(4), pick(2), byte(random.IntN(3))
		require.Equal(t, describe(vantage, resource, start, end), *c.Find(vantage, resource, start, end))
	}
}
