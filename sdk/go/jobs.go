package berth

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"berth.dev/sdk/go/api"
)

// The vocabulary of jobs, as the service has it.
type (
	Job             = api.Job
	JobDetail       = api.JobDetail
	JobSpec         = api.JobSpec
	JobState        = api.JobState
	ResourceRequest = api.ResourceRequest
	SubmittedJob    = api.SubmittedJob
	ListParams      = api.JobsListParams
	LogsParams      = api.JobsLogsParams
	CancelJob       = api.CancelJob
)

const (
	firstPoll = 100 * time.Millisecond
	lastPoll  = 2 * time.Second
)

// Submit submits a job. When it returns, the job is on disk. The request is repeated if need be, and yet makes one job.
func (c *Client) Submit(ctx context.Context, spec JobSpec) (*SubmittedJob, error) {
	return decode[SubmittedJob](c.API.JobsSubmit(ctx, &api.JobsSubmitParams{IdempotencyKey: Ptr(rand.Text())}, spec))
}

// SubmitScript submits a batch script, `#SBATCH` lines and all, as Submit does.
func (c *Client) SubmitScript(ctx context.Context, script string) (*SubmittedJob, error) {
	params := &api.JobsSubmitParams{IdempotencyKey: Ptr(rand.Text())}
	return decode[SubmittedJob](c.API.JobsSubmitWithBody(ctx, params, "text/x-shellscript", strings.NewReader(script)))
}

// Get reads a job.
func (c *Client) Get(ctx context.Context, jobID int64) (*JobDetail, error) {
	return decode[JobDetail](c.API.JobsGet(ctx, ref(jobID)))
}

// List reads the jobs that match, page by page; the newest first unless the parameters say otherwise. It ends at the first error.
func (c *Client) List(ctx context.Context, params ListParams) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		for {
			page, err := decode[api.PageJob](c.API.JobsList(ctx, &params))
			if err != nil {
				yield(Job{}, err)
				return
			}
			for _, job := range page.Items {
				if !yield(job, nil) {
					return
				}
			}
			if page.NextPageToken == nil {
				return
			}
			params.PageToken = page.NextPageToken
		}
	}
}

// Wait waits until the job has ended, however it did; a requeued job has not. The context sets the limit.
func (c *Client) Wait(ctx context.Context, jobID int64) (*JobDetail, error) {
	pause := firstPoll
	for {
		job, err := c.Get(ctx, jobID)
		if err != nil {
			return nil, err
		}
		if IsEnd(job.State) {
			return job, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("berth: job %d is still %s: %w", jobID, job.State, ctx.Err())
		}
		pause = min(pause*3/2, lastPoll)
	}
}

// Logs reads what a task has written so far: task 0 of the job's main step in its last attempt, unless the parameters say otherwise.
func (c *Client) Logs(ctx context.Context, jobID int64, params LogsParams) ([]byte, error) {
	var all []byte
	for {
		response, err := c.API.JobsLogs(ctx, ref(jobID), &params)
		if err != nil {
			return nil, err
		}
		piece, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("berth: the output of job %d: %w", jobID, err)
		}
		all = append(all, piece...)
		if params.Tail != nil || len(piece) == 0 {
			return all, nil
		}
		next, err := strconv.ParseInt(response.Header.Get("X-Next-Offset"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("berth: the output of job %d: where to read on: %w", jobID, err)
		}
		params.Offset = &next
	}
}

// Cancel cancels a job: a pending one ends at once, a running one after its grace time. One that has ended stays as it is.
func (c *Client) Cancel(ctx context.Context, jobID int64, options CancelJob) (*Job, error) {
	return decode[Job](c.API.JobsCancel(ctx, ref(jobID), options))
}

// IsEnd tells whether a job stays in this state for good.
func IsEnd(state JobState) bool {
	switch state {
	case api.JobStatePending, api.JobStateAllocated, api.JobStateRunning, api.JobStateSuspended, api.JobStateCompleting:
		return false
	default:
		return true
	}
}

// ref is a job's number as paths have it.
func ref(jobID int64) string {
	return strconv.FormatInt(jobID, 10)
}
