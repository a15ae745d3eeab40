// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// awsCLI is a process of the AWS CLI that is installed. It begins once, which costs half a second of a processor, and
// forks for each command line: testdata/awscli says how. Calls wait for each other.
type awsCLI struct {
	calls   sync.Mutex
	forks   bool // reports whether the CLI is a program of Python, and has begun
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers *json.Decoder
}

// awsCall is a command line, and all else that decides what comes of it.
type awsCall struct{ Arguments, Environment []string }

// begin begins the process, if that was not tried before, and reports whether it runs command lines. Else each needs a
// process of its own. The CLI settles where its caches are when it begins: in the home directory of this environment.
func (c *awsCLI) begin(t *testing.T, environment []string) bool {
	t.Helper()
	c.calls.Lock()
	defer c.calls.Unlock()
	if c.cmd != nil {
		return c.forks
	}
	program, err := exec.LookPath("aws")
	if err != nil {
		t.Fatal("there is no AWS CLI, which tools/testneeds.sh installs: nothing is tested")
	}
	module, err := filepath.Abs(filepath.Join("testdata", "awscli"))
	if err != nil {
		t.Fatal(err)
	}
	c.cmd = exec.Command(program)
	c.cmd.Env = append(slices.Clone(environment), "PYTHONPATH="+module, "PYTHONDONTWRITEBYTECODE=1")
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	answers, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.answers = json.NewDecoder(answers)
	var first struct{ Ready bool }
	if err := c.answers.Decode(&first); err != nil || !first.Ready {
		t.Log("this AWS CLI is not a program of Python, so that each call of it is a process")
		c.end()
		return false
	}
	c.forks = true
	return true
}

// end ends the process.
func (c *awsCLI) end() {
	if c.cmd == nil || c.cmd.Process == nil { // it was not needed, or has not begun
		return
	}
	_ = c.stdin.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	c.forks = false
}

// call runs a command line.
func (c *awsCLI) call(t *testing.T, call awsCall) (string, error) {
	t.Helper()
	c.calls.Lock()
	defer c.calls.Unlock()
	if err := json.NewEncoder(c.stdin).Encode(call); err != nil {
		t.Fatalf("asking the AWS CLI: %v", err)
	}
	var answer struct {
		Status    int
		Out, Talk string
	}
	if err := c.answers.Decode(&answer); err != nil {
		t.Fatalf("waiting for the AWS CLI: %v", err)
	}
	if answer.Status != 0 {
		return answer.Out, fmt.Errorf("aws %s: exit status %d: %s", strings.Join(call.Arguments, " "), answer.Status, strings.TrimSpace(answer.Talk))
	}
	return strings.TrimSpace(answer.Out), nil
}

// aws runs the AWS CLI. Versions before 1.29 and 2.13 do not read the endpoints of services from the environment: flags
// tell them.
func (w *iam) aws(who []string, args ...string) (string, error) {
	for _, v := range w.endpoint {
		if url, ok := strings.CutPrefix(v, "AWS_ENDPOINT_URL="); ok {
			args = append(args, "--endpoint-url", url)
		}
	}
	if !w.cli.begin(w.t, w.environmentOf(nil)) {
		return w.run(who, "aws", args...)
	}
	return w.cli.call(w.t, awsCall{Arguments: args, Environment: w.environmentOf(who)})
}
