// Package berth is a client of Berth, Slurm's scheduling policy as a cloud service.
//
// The operations that have no method here are those of [Client.API], which is generated from the OpenAPI document.
package berth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"berth.dev/sdk/go/api"
)

const defaultServer = "http://127.0.0.1:6780"

// Client is a client of one Berth service; safe for use by many goroutines.
type Client struct {
	// API has all operations. They return [*APIError] too, and retry as the methods of Client do.
	API *api.Client
}

// New makes a client. The server is the service's address, or those of several replicas with commas between. The token is the bearer
// token; without one, requests carry none.
func New(server, token string) (*Client, error) {
	replicas := newReplicas(token)
	for _, part := range strings.Split(server, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		address, err := url.Parse(part)
		if err != nil || address.Host == "" {
			return nil, fmt.Errorf("berth: %q is not the address of a server; for example %s", part, defaultServer)
		}
		replicas.servers = append(replicas.servers, address)
	}
	if len(replicas.servers) == 0 {
		return nil, errors.New("berth: no server is named")
	}
	client, err := api.NewClient(placeholder, api.WithHTTPClient(replicas))
	if err != nil {
		return nil, fmt.Errorf("berth: %w", err)
	}
	return &Client{API: client}, nil
}

// FromEnv makes a client for the server in BERTH_SERVER, or http://127.0.0.1:6780, with the token in BERTH_TOKEN or in the file that
// BERTH_TOKEN_FILE names.
func FromEnv() (*Client, error) {
	server := os.Getenv("BERTH_SERVER")
	if server == "" {
		server = defaultServer
	}
	token := strings.TrimSpace(os.Getenv("BERTH_TOKEN"))
	if path := os.Getenv("BERTH_TOKEN_FILE"); token == "" && path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("berth: the token file: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	return New(server, token)
}

// Ptr is a pointer to a value, for the optional fields of a spec.
func Ptr[T any](value T) *T {
	return &value
}

// decode reads the answer of a generated operation. Problems have become errors before.
func decode[T any](response *http.Response, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	value := new(T)
	if err := json.NewDecoder(response.Body).Decode(value); err != nil {
		return nil, fmt.Errorf("berth: the answer cannot be read: %w", err)
	}
	return value, nil
}
