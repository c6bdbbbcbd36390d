// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"errors"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
)

// judgeAnswer notes a failure of the engine. Any status below 500 shows that it takes requests. A 503 or 529 of overload
// counts as a failure, like any 5xx: an engine that only sheds load has tokens for others, which end the count.
func (d *decoding) judgeAnswer(engine *liveness.Engine) {
	switch status := d.answered.status; {
	case status >= http.StatusInternalServerError:
		engine.Fail(engines.Now(), false, d.client())
	case status != 0:
		engine.Answered()
	case !d.clientGone() && !d.receiver.closing.Load() && isRefusal(d.answered.upstreamError):
		engine.Fail(engines.Now(), true, 0)
	}
}

// isRefusal reports whether the host of the upstream refused or reset the connection, closed it without an answer, or
// cannot be reached. Other errors show nothing of the engine: a name that is not resolved, a certificate that is not
// trusted, too few ports or files of this process, an answer that is not HTTP, a body that the client does not send.
func isRefusal(err error) bool {
	for _, known := range [...]error{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.EHOSTDOWN,
		io.EOF, io.ErrUnexpectedEOF,
		net.ErrClosed, // net/http saw the upstream close the connection during the write of a request
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	var dial *net.OpError
	var name *net.DNSError
	return errors.As(err, &dial) && dial.Op == "dial" && dial.Timeout() && !errors.As(err, &name)
}

var clientSeed = maphash.MakeSeed()

// tenantAttribute names the tenant of a request, if `attributes_from_headers` maps a header to it.
const tenantAttribute = "tenant.id"

// client is a hash of who asked: the host, and the tenant, because the host may be that of a proxy.
func (d *decoding) client() uint64 {
	request := d.asked.request
	host, _, _ := net.SplitHostPort(request.RemoteAddr)
	sum := maphash.String(clientSeed, host)
	for header, attribute := range d.receiver.cfg.AttributesFromHeaders { // in any order
		if attribute == tenantAttribute {
			sum += maphash.String(clientSeed, request.Header.Get(header))
		}
	}
	return sum
}
