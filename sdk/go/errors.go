package berth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"berth.dev/sdk/go/api"
)

// ErrUnreachable is wrapped by the error of a request that no server answered.
var ErrUnreachable = errors.New("the service cannot be reached")

// maxProblemBytes is more than any problem of the service has.
const maxProblemBytes = 1 << 20

// APIError is the service's answer to a request that it refused or could not do.
type APIError struct {
	Status int
	// Code is a stable identifier, for programs.
	Code string
	// Field of the request that it concerns, if one does.
	Field string
	// Detail says what was found.
	Detail string
	// Help says what would be right.
	Help string
	// Errors has all faults, when there is more than one.
	Errors    []api.Fault
	RequestID string
}

func (e *APIError) Error() string {
	var text strings.Builder
	text.WriteString(e.Detail)
	if e.Field != "" {
		fmt.Fprintf(&text, " (%s)", e.Field)
	}
	if e.Help != "" {
		fmt.Fprintf(&text, "; %s", e.Help)
	}
	return text.String()
}

// problem reads an answer that is not a success, and closes it.
func problem(response *http.Response) *APIError {
	defer response.Body.Close()
	err := &APIError{
		Status: response.StatusCode,
		Code:   fmt.Sprintf("http_%d", response.StatusCode),
		Detail: fmt.Sprintf("the service answered %s", response.Status),
	}
	var found api.Problem
	body, readErr := io.ReadAll(io.LimitReader(response.Body, maxProblemBytes))
	// What is not a problem document comes from elsewhere: a proxy's page, for example.
	if readErr != nil || json.Unmarshal(body, &found) != nil || found.Code == "" {
		return err
	}
	err.Code, err.Detail = found.Code, found.Detail
	err.Field, err.Help, err.RequestID = value(found.Field), value(found.Help), value(found.RequestId)
	err.Errors = value(found.Errors)
	return err
}

// value is what an optional field has, or the zero value.
func value[T any](optional *T) (value T) {
	if optional != nil {
		value = *optional
	}
	return value
}
