// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"muster.dev/muster/internal/explain/readaudit"
	"muster.dev/muster/internal/explain/redaction"
	"muster.dev/muster/internal/platform/termsafe"
)

const (
	// mostAnswer and mostTalk are how much of a command's output and messages is read, in bytes.
	mostAnswer = 1 << 20
	mostTalk   = 8 << 10
	// answerTime is how long a command may run.
	answerTime = time.Minute
	// mostAtOnce is how many commands run at once.
	mostAtOnce = 2
	// mostCalls is how many calls may wait for an answer.
	mostCalls = 32
)

// asker runs the muster program.
type asker struct {
	program, stateDir, cluster string
	kubeconfig, context        string // of another cluster; empty for the state directory's
	// record writes down a read before it; nil where no installation is there to keep the record.
	record func(readaudit.Read) error
	by     readaudit.Reader
	now    func() time.Time
	busy   chan struct{} // has an entry for each command that runs
	calls  chan struct{} // has an entry for each call that is not answered yet
}

// answer is what a command says.
type answer struct {
	// JSON that the command printed, without secrets; empty if it printed none.
	JSON string
	// Talk is what it said besides.
	Talk string
	// Code is its exit code.
	Code int
}

// ask runs a command line for a client.
func (a *asker) ask(ctx context.Context, t tool, line []string, client string) (answer, error) {
	select {
	case a.calls <- struct{}{}:
		defer func() { <-a.calls }()
	default:
		return answer{}, fmt.Errorf("%d calls wait already: wait for their answers", mostCalls)
	}
	select {
	case a.busy <- struct{}{}:
		defer func() { <-a.busy }()
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	line = a.place(t, line)
	if a.record != nil {
		if err := a.record(readaudit.Read{Time: a.now().UTC(), By: a.by, With: "muster mcp", Client: client, Command: strings.Join(line, " ")}); err != nil {
			return answer{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	out, talk := &bounded{most: mostAnswer, full: cancel}, &bounded{most: mostTalk}
	cmd := exec.CommandContext(ctx, a.program, line...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, talk, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case out.over:
		return answer{}, fmt.Errorf("the answer has more than %d KiB: ask about one object, a shorter time or fewer rows", mostAnswer>>10)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return answer{}, fmt.Errorf("muster %s has not answered after %s", strings.Join(t.command, " "), answerTime)
	case err != nil && !ended:
		return answer{}, fmt.Errorf("running muster: %w", err)
	case ended && exit.ExitCode() < 0:
		return answer{}, fmt.Errorf("muster %s was ended: %w", strings.Join(t.command, " "), exit)
	}
	said := answer{Talk: talk.text()}
	if ended {
		said.Code = exit.ExitCode()
	}
	said.JSON, err = clean(out.data.Bytes())
	return said, err
}

// place adds to a command line where the installation or the cluster is. The flags of a call come later, and count.
func (a *asker) place(t tool, line []string) []string {
	var flags []string
	add := func(flag, value string) {
		if value != "" {
			flags = append(flags, flag+"="+value)
		}
	}
	add("--state-dir", a.stateDir)
	add("--cluster", a.cluster)
	if t.anywhere {
		add("--kubeconfig", a.kubeconfig)
		add("--context", a.context)
	}
	words := len(t.command)
	return append(append(append([]string{}, line[:words]...), flags...), line[words:]...)
}

// clean takes the secrets out of JSON that a command printed. Characters that a person would not see there are escaped: a
// model reads them.
func clean(printed []byte) (string, error) {
	if len(bytes.TrimSpace(printed)) == 0 {
		return "", nil
	}
	if !json.Valid(printed) {
		return "", errors.New("muster printed what is not JSON")
	}
	text, _, err := redaction.JSON(json.RawMessage(printed))
	return string(termsafe.JSON(text)), err
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	data bytes.Buffer
	most int
	full func() // called when there is more; nil for nothing
	over bool
}

// Write implements io.Writer.
func (b *bounded) Write(data []byte) (int, error) {
	room := b.most - b.data.Len()
	if len(data) > room {
		b.over = true
		if b.full != nil {
			b.full()
		}
	}
	b.data.Write(data[:min(len(data), max(room, 0))])
	return len(data), nil
}

// text is what was kept, safe to show.
func (b *bounded) text() string {
	text, _ := redaction.Text(strings.ToValidUTF8(b.data.String(), "\uFFFD"))
	if b.over {
		text += "…"
	}
	return termsafe.Lines(strings.TrimSpace(text))
}
