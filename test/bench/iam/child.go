// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// service is a process that lives until its standard input is closed, which the kernel does when this one dies.
type service struct {
	command *exec.Cmd
	input   io.Closer
	ready   string // its output when it was ready
}

// startService runs this program again as a service and returns when that is ready.
func startService(ctx context.Context, log io.Writer, environment []string, args ...string) (*service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	return startProgram(ctx, log, environment, self, args...)
}

func startProgram(ctx context.Context, log io.Writer, environment []string, path string, args ...string) (*service, error) {
	s := &service{command: exec.CommandContext(ctx, path, args...)}
	s.command.Env, s.command.Stderr = environment, log
	input, err := s.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", args[0], err)
	}
	s.input = input
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		s.close()
		return nil, fmt.Errorf("%s ended before it was ready: %w", args[0], err)
	}
	s.ready = strings.TrimSpace(line)
	return s, nil
}

// close has it end. How it does is nothing that a figure depends on.
func (s *service) close() {
	_ = s.input.Close()
	_ = s.command.Wait()
}

// pid is its process.
func (s *service) pid() int { return s.command.Process.Pid }

// childTime is how long a measurement may take beyond what it is told to.
const childTime = 3 * time.Minute

// measured runs this program again to measure something, and reads what it prints.
func measured(ctx context.Context, args ...string) (r result, err error) {
	ctx, cancel := context.WithTimeout(ctx, childTime)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return r, fmt.Errorf("finding this program: %w", err)
	}
	command := exec.CommandContext(ctx, self, args...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return r, fmt.Errorf("measuring with %s: %w", strings.Join(args, " "), err)
	}
	return r, json.Unmarshal(out, &r)
}
