// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// warnings returns a logger that writes what the Collector would warn of, a line each.
func warnings(out io.Writer) *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{
		LevelKey: "level", MessageKey: "message", ConsoleSeparator: " ", LineEnding: "\n",
		EncodeLevel: func(_ zapcore.Level, out zapcore.PrimitiveArrayEncoder) { out.AppendString("tokenpulse: warning:") },
		EncodeTime:  zapcore.ISO8601TimeEncoder, EncodeDuration: zapcore.StringDurationEncoder,
	})
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(out), zapcore.WarnLevel))
}
