package send

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

const (
	tokensPath = "/v1/tokens"

	contentTypeNDJSON   = "application/x-ndjson"
	contentTypeJSON     = "application/json"
	contentTypeProtobuf = "application/x-protobuf"

	maxAnswerBytes = 64 << 10
)

// httpClient posts to the receiver.
type httpClient struct {
	client  *http.Client
	url     string
	headers map[string]string
}

func newHTTPClient(config Config) *httpClient {
	hostPort, tls := address(config.Endpoint, defaultHTTPEndpoint)
	scheme := "http://"
	if tls {
		scheme = "https://"
	}
	return &httpClient{
		client:  &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()},
		url:     scheme + strings.TrimSuffix(hostPort, "/") + tokensPath,
		headers: config.Headers,
	}
}

func (c *httpClient) close() error {
	c.client.CloseIdleConnections()
	return nil
}

// post sends one body and reads the answer to it.
func (c *httpClient) post(ctx context.Context, contentType string, body io.Reader) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, body)
	if err != nil {
		return answer{}, err
	}
	for key, value := range c.headers {
		request.Header.Set(key, value)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := c.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return answer{}, err
		}
		return answer{}, &refusal{cause: err}
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return answer{}, &refusal{cause: err}
	}
	if response.StatusCode/100 == 2 {
		return parseAnswer(response.Header.Get("Content-Type"), said)
	}
	err = fmt.Errorf("%s answered %s: %s", c.url, response.Status, strings.TrimSpace(string(said)))
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		// A long body can be refused in the middle: the numbers say where.
		a, accepted, _ := parseJSONAnswer(said)
		return a, &refusal{cause: err, after: retryAfter(response.Header), taken: accepted + int(a.rejected)}
	default:
		return answer{}, err
	}
}

// retryAfter reads both forms of the header: seconds and a date.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return time.Until(date)
	}
	return 0
}

func parseAnswer(contentType string, said []byte) (answer, error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return answer{}, fmt.Errorf("the answer's Content-Type %q: %w", contentType, err)
	}
	if mediaType == contentTypeProtobuf {
		var response tokenpulsev1.ExportTokenStreamsResponse
		if err := proto.Unmarshal(said, &response); err != nil {
			return answer{}, fmt.Errorf("cannot read the answer: %w", err)
		}
		return protoAnswer(&response), nil
	}
	a, _, err := parseJSONAnswer(said)
	return a, err
}

// parseJSONAnswer returns also how many items the receiver accepted.
func parseJSONAnswer(said []byte) (a answer, accepted int, err error) {
	var response struct {
		Accepted int   `json:"accepted"`
		Rejected int64 `json:"rejected"`
		Errors   []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(said, &response); err != nil {
		return answer{}, 0, errors.New("cannot read the answer: is this a token_stream receiver?")
	}
	a.rejected = response.Rejected
	if len(response.Errors) > 0 {
		a.reason = response.Errors[0].Message
	}
	return a, response.Accepted, nil
}

func protoAnswer(response *tokenpulsev1.ExportTokenStreamsResponse) answer {
	partial := response.GetPartialSuccess()
	return answer{rejected: partial.GetRejectedTokenStreams(), reason: partial.GetErrorMessage()}
}
