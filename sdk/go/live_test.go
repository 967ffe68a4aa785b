package berth_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
	"time"

	berth "berth.dev/sdk/go"
	"berth.dev/sdk/go/api"
)

// live is a client of the service that BERTH_SERVER names, and a context for the test.
func live(t *testing.T) (*berth.Client, context.Context) {
	t.Helper()
	if os.Getenv("BERTH_SERVER") == "" {
		t.Skip("BERTH_SERVER is not set")
	}
	client, err := berth.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return client, ctx
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func command(words ...string) berth.JobSpec {
	return berth.JobSpec{Command: &words}
}

func TestAScriptRunsAndItsOutputIsRead(t *testing.T) {
	client, ctx := live(t)
	submitted := must[*berth.SubmittedJob](t)(client.SubmitScript(ctx, "#!/bin/sh\n#SBATCH --job-name=sdk-go\necho out; exit 3\n"))
	job := must[*berth.JobDetail](t)(client.Wait(ctx, submitted.JobId))
	if job.State != api.JobStateFailed || job.ExitCode == nil || *job.ExitCode != 3 || job.Name != "sdk-go" {
		t.Errorf("the job is %s, exit code %v, named %s", job.State, job.ExitCode, job.Name)
	}
	if output := must[[]byte](t)(client.Logs(ctx, job.JobId, berth.LogsParams{})); string(output) != "out\n" {
		t.Errorf("the output is %q", output)
	}
	if tail := must[[]byte](t)(client.Logs(ctx, job.JobId, berth.LogsParams{Tail: berth.Ptr[int64](3)})); string(tail) != "ut\n" {
		t.Errorf("the end of the output is %q", tail)
	}
}

func TestASpecKeepsItsFields(t *testing.T) {
	client, ctx := live(t)
	spec := command("sh", "-c", "echo $WHO $SLURM_PROCID")
	spec.Environment = &map[string]string{"WHO": "task"}
	spec.Resources = &berth.ResourceRequest{Tasks: berth.Ptr[int32](2), MemoryPerNodeBytes: berth.Ptr[int64](64 << 20)}
	job := must[*berth.JobDetail](t)(client.Wait(ctx, must[*berth.SubmittedJob](t)(client.Submit(ctx, spec)).JobId))
	if job.State != api.JobStateCompleted || *job.Spec.Resources.MemoryPerNodeBytes != 64<<20 {
		t.Errorf("the job is %s, its spec %+v", job.State, job.Spec)
	}
	output := must[[]byte](t)(client.Logs(ctx, job.JobId, berth.LogsParams{Task: berth.Ptr[int32](1)}))
	if string(output) != "task 1\n" {
		t.Errorf("the output of task 1 is %q", output)
	}
}

func TestAWrongSpecIsRefusedWithHelp(t *testing.T) {
	client, ctx := live(t)
	spec := command("true")
	spec.Partition = berth.Ptr("No such partition!")
	_, err := client.Submit(ctx, spec)
	var refused *berth.APIError
	if !errors.As(err, &refused) {
		t.Fatalf("the error is %v", err)
	}
	if refused.Status != 422 || refused.Code == "" || refused.Field != "partition" || refused.Detail == "" || refused.Help == "" {
		t.Errorf("the error is %+v", refused)
	}
	if _, err := client.Get(ctx, 1<<40); !errors.As(err, &refused) || refused.Status != 404 || refused.Code != "not_found" {
		t.Errorf("the error of an unknown job is %v", err)
	}
}

func TestAWrongTokenIsRefused(t *testing.T) {
	_, ctx := live(t)
	client := must[*berth.Client](t)(berth.New(os.Getenv("BERTH_SERVER"), "wrong"))
	for _, err := range client.List(ctx, berth.ListParams{}) {
		var refused *berth.APIError
		if !errors.As(err, &refused) || refused.Status != 401 {
			t.Fatalf("the error is %v", err)
		}
	}
}

func TestAListGoesThroughAllPages(t *testing.T) {
	client, ctx := live(t)
	label := "sdk=" + time.Now().Format("20060102T150405.000000000")
	spec := command("true")
	spec.Hold, spec.Labels = berth.Ptr(true), &map[string]string{"sdk": label[len("sdk="):]}
	var expected, found []int64
	for range 5 {
		id := must[*berth.SubmittedJob](t)(client.Submit(ctx, spec)).JobId
		t.Cleanup(func() { _, _ = client.Cancel(context.Background(), id, berth.CancelJob{}) })
		expected = append(expected, id)
	}
	params := berth.ListParams{
		Label:    &[]string{label},
		State:    &[]berth.JobState{api.JobStatePending, api.JobStateRunning},
		OrderBy:  berth.Ptr("job_id"),
		PageSize: berth.Ptr[int32](2),
	}
	for job, err := range client.List(ctx, params) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, job.JobId)
	}
	if !slices.Equal(found, expected) {
		t.Errorf("the list has %v, not %v", found, expected)
	}
}

func TestAWaitHasALimitAndAJobIsCancelled(t *testing.T) {
	client, ctx := live(t)
	id := must[*berth.SubmittedJob](t)(client.Submit(ctx, command("sleep", "600"))).JobId
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := client.Wait(short, id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the wait ended with %v", err)
	}
	must[*berth.Job](t)(client.Cancel(ctx, id, berth.CancelJob{GraceSeconds: berth.Ptr[int64](1)}))
	if job := must[*berth.JobDetail](t)(client.Wait(ctx, id)); job.State != api.JobStateCancelled {
		t.Errorf("the job is %s", job.State)
	}
}

func TestTheExamplePrintsWhatTheJobWrote(t *testing.T) {
	_, ctx := live(t)
	example := exec.CommandContext(ctx, "go", "run", "./examples/submit")
	example.Stderr = os.Stderr
	output := must[[]byte](t)(example.Output())
	if !regexp.MustCompile(`^Hello from \S+, job \d+\n$`).Match(output) {
		t.Errorf("the example printed %q", output)
	}
}
