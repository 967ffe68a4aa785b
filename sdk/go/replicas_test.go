package berth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	berth "berth.dev/sdk/go"
)

const (
	submitted   = `201 {"job_id": 7, "state": "pending", "submit_time": "2026-01-02T03:04:05Z"}`
	unavailable = `503 {"code": "unavailable", "detail": "the database restarts", "help": "try again", "status": 503}`
	noJobs      = `200 {"items": []}`
	hangUp      = ""
)

type received struct {
	*http.Request
	body string
}

// replica is a server that gives the answers in turn, the last one again and again, and keeps the requests.
type replica struct {
	*httptest.Server
	mutex sync.Mutex
	seen  []received
}

func (r *replica) requests() []received {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.seen
}

func newReplica(t *testing.T, answers ...string) *replica {
	r := &replica{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mutex.Lock()
		r.seen = append(r.seen, received{request, string(body)})
		answer := answers[min(len(r.seen), len(answers))-1]
		r.mutex.Unlock()
		if answer == hangUp {
			panic(http.ErrAbortHandler)
		}
		var status int
		_, _ = fmt.Sscan(answer, &status)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer[4:])
	}))
	t.Cleanup(r.Close)
	return r
}

// deadURL is the address of a server that is no more.
func deadURL() string {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	return server.URL
}

func TestASubmissionIsRepeatedUnderOneKey(t *testing.T) {
	r := newReplica(t, unavailable, hangUp, unavailable, submitted)
	client := must[*berth.Client](t)(berth.New(r.URL, "t"))
	job := must[*berth.SubmittedJob](t)(client.Submit(context.Background(), command("true")))
	if job.JobId != 7 || len(r.requests()) != 4 {
		t.Fatalf("job %d after %d requests", job.JobId, len(r.requests()))
	}
	key := r.requests()[0].Header.Get("Idempotency-Key")
	for _, request := range r.requests() {
		if request.Header.Get("Idempotency-Key") != key || key == "" || request.body != `{"command":["true"]}` {
			t.Errorf("key %q, body %s", request.Header.Get("Idempotency-Key"), request.body)
		}
	}
	must[*berth.SubmittedJob](t)(client.SubmitScript(context.Background(), "#!/bin/sh\n"))
	script := r.requests()[4]
	if script.Header.Get("Idempotency-Key") == key || script.Header.Get("Content-Type") != "text/x-shellscript" || script.body != "#!/bin/sh\n" {
		t.Errorf("the script was sent as %v %q", script.Header, script.body)
	}
}

func TestAnotherReplicaAnswersForADeadOne(t *testing.T) {
	r := newReplica(t, noJobs)
	client := must[*berth.Client](t)(berth.New(deadURL()+", "+r.URL+"/prefix/", "t"))
	for _, err := range client.List(context.Background(), berth.ListParams{Name: &[]string{"a b"}}) {
		t.Fatal(err)
	}
	request := r.requests()[0]
	if uri := request.RequestURI; uri != "/prefix/v1/jobs?name=a+b" && uri != "/prefix/v1/jobs?name=a%20b" {
		t.Errorf("the request was for %s", uri)
	}
	if request.Host != strings.TrimPrefix(r.URL, "http://") || request.Header.Get("Authorization") != "Bearer t" {
		t.Errorf("host %s, headers %v", request.Host, request.Header)
	}
}

func TestAnActThatMayHaveBeenDoneIsNotRepeated(t *testing.T) {
	r := newReplica(t, hangUp)
	client := must[*berth.Client](t)(berth.New(r.URL, "t"))
	_, err := client.Cancel(context.Background(), 7, berth.CancelJob{})
	if !errors.Is(err, berth.ErrUnreachable) || !strings.Contains(err.Error(), "whether it was done is not known") || len(r.requests()) != 1 {
		t.Errorf("%v after %d requests", err, len(r.requests()))
	}
}

func TestAServiceThatCannotAnswerSaysSo(t *testing.T) {
	for answer, code := range map[string]string{unavailable: "unavailable", "502 <html>Bad gateway</html>": "http_502"} {
		client := must[*berth.Client](t)(berth.New(newReplica(t, answer).URL, "t"))
		_, err := client.Get(context.Background(), 7)
		var refused *berth.APIError
		if !errors.As(err, &refused) || refused.Code != code {
			t.Errorf("%q became %v", answer, err)
		}
	}
	client := must[*berth.Client](t)(berth.New(deadURL(), "t"))
	if _, err := client.Get(context.Background(), 7); !errors.Is(err, berth.ErrUnreachable) {
		t.Errorf("the error is %v", err)
	}
}

func TestSettingsComeFromTheEnvironment(t *testing.T) {
	r := newReplica(t, noJobs)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BERTH_SERVER", r.URL)
	t.Setenv("BERTH_TOKEN_FILE", file)
	for variable, expected := range map[string]string{"": "Bearer from-file", "from-variable": "Bearer from-variable"} {
		t.Setenv("BERTH_TOKEN", variable)
		for _, err := range must[*berth.Client](t)(berth.FromEnv()).List(context.Background(), berth.ListParams{}) {
			t.Fatal(err)
		}
		if found := r.requests()[len(r.requests())-1].Header.Get("Authorization"); found != expected {
			t.Errorf("the token sent is %q, not %q", found, expected)
		}
	}
}
