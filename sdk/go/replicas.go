package berth

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// placeholder is the base address of requests; a server's takes its place.
const placeholder = "http://berth"

const (
	// rounds is how often all servers are tried.
	rounds         = 4
	firstWait      = 200 * time.Millisecond
	connectTimeout = 3 * time.Second
	answerTimeout  = 60 * time.Second
)

// replicas sends requests to whichever replica of the service answers, and repeats those that may be repeated: requests that read or
// carry an idempotency key, and any that no server has received. Answers that are not a success become [*APIError].
type replicas struct {
	servers []*url.URL
	token   string
	http    *http.Client
}

func newReplicas(token string) *replicas {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: connectTimeout}).DialContext
	transport.ResponseHeaderTimeout = answerTimeout
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &replicas{token: token, http: client}
}

// Do implements api.HttpRequestDoer.
func (r *replicas) Do(request *http.Request) (*http.Response, error) {
	isRepeatable := request.Method == http.MethodGet || request.Header.Get("Idempotency-Key") != ""
	var last error
	for round := range rounds {
		if round > 0 {
			select {
			case <-time.After(firstWait << (round - 1)):
			case <-request.Context().Done():
				return nil, request.Context().Err()
			}
		}
		for _, server := range r.servers {
			copied, err := r.at(server, request)
			if err != nil {
				return nil, err
			}
			response, err := r.http.Do(copied)
			switch {
			case err != nil && request.Context().Err() != nil:
				return nil, err
			case err != nil && !isRepeatable && !neverConnected(err):
				return nil, fmt.Errorf("berth: whether it was done is not known: %w: %w", ErrUnreachable, err)
			case err != nil:
				last = fmt.Errorf("berth: %w: %w", ErrUnreachable, err)
			case response.StatusCode == http.StatusServiceUnavailable && isRepeatable:
				last = problem(response)
			case response.StatusCode < 200 || response.StatusCode > 299:
				return nil, problem(response)
			default:
				return response, nil
			}
		}
	}
	return nil, last
}

// at is the same request, addressed to server.
func (r *replicas) at(server *url.URL, request *http.Request) (*http.Request, error) {
	copied := request.Clone(request.Context())
	target := *request.URL
	target.Scheme, target.Host = server.Scheme, server.Host
	target.RawPath = strings.TrimSuffix(server.EscapedPath(), "/") + request.URL.EscapedPath()
	target.Path = strings.TrimSuffix(server.Path, "/") + request.URL.Path
	copied.URL, copied.Host = &target, server.Host
	if r.token != "" {
		copied.Header.Set("Authorization", "Bearer "+r.token)
	}
	if request.Body != nil {
		body, err := body(request)
		if err != nil {
			return nil, fmt.Errorf("berth: the request's body: %w", err)
		}
		copied.Body = body
	}
	return copied, nil
}

// body is a fresh copy of the request's body.
func body(request *http.Request) (io.ReadCloser, error) {
	if request.GetBody == nil {
		return nil, errors.New("it can be read only once; give a bytes.Reader or a strings.Reader")
	}
	return request.GetBody()
}

func neverConnected(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && operation.Op == "dial"
}
