// Submits a job, waits for its end and prints its output. BERTH_SERVER says where, BERTH_TOKEN or BERTH_TOKEN_FILE as whom.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	berth "berth.dev/sdk/go"
	"berth.dev/sdk/go/api"
)

const script = `#!/bin/sh
#SBATCH --job-name=hello --time=5
echo "Hello from $(hostname), job $SLURM_JOB_ID"
`

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	client, err := berth.FromEnv()
	if err != nil {
		return err
	}
	submitted, err := client.SubmitScript(ctx, script)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "Submitted job %d\n", submitted.JobId)
	job, err := client.Wait(ctx, submitted.JobId)
	if err != nil {
		return err
	}
	output, err := client.Logs(ctx, job.JobId, berth.LogsParams{})
	if err != nil {
		return err
	}
	os.Stdout.Write(output)
	if job.State != api.JobStateCompleted {
		return fmt.Errorf("job %d is %s", job.JobId, job.State)
	}
	return nil
}
