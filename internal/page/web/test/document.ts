// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// @ts-nocheck: Node.js has no document
globalThis.document = {getElementById: () => null}; // the page of a Collector
