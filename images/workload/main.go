// SPDX-License-Identifier: Apache-2.0

// Workload is a small program for trying a cluster out from inside a pod: it serves its pod's name, its environment,
// and what DNS and other servers look like from there, over HTTP or as commands for `kubectl exec`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `usage: workload COMMAND

  serve [-listen ADDRESS]  answer HTTP (default :8080): / with the pod's name, /env, /resolve?name=NAME, /fetch?url=URL
  resolve NAME             print the addresses of NAME, one a line
  fetch URL                print what URL answers; fails unless the status is 2xx
  count [-pause TIME] DIR  append number after number to a file in DIR, each on the disk before it is printed (default 100ms)
  counted DIR              print the last of these numbers; fails if one is missing
  fsync [-n N] FILE        write a block to a file or device and wait until it is on the disk, N times (default 1000); print the median and p99 in µs
  disk [-write TEXT] FILE  print the size of a block device and the line at its beginning; TEXT is that line, once it is written
  env                      print the environment, sorted
`

// errUsage means the command line was wrong; main answers it with the usage text and status 2.
var errUsage = errors.New("wrong usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "workload:", err)
		os.Exit(1)
	}
}

// run does what args say and writes its answer to stdout.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	hostname, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the pod's name: %w", err)
	}
	w := workload{hostname: hostname, environ: os.Environ, lookup: net.DefaultResolver.LookupHost, client: newClient()}

	switch command, rest := args[0], args[1:]; {
	case command == "serve":
		return serve(ctx, w, rest)
	case command == "count":
		return countAs(ctx, stdout, rest)
	case command == "counted" && len(rest) == 1:
		last, _, err := counted(rest[0])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(stdout, last)
		return err
	case command == "fsync":
		return fsync(stdout, rest)
	case command == "disk":
		return disk(stdout, rest)
	case command == "env" && len(rest) == 0:
		return w.env(stdout)
	case command == "resolve" && len(rest) == 1:
		return w.resolve(ctx, stdout, rest[0])
	case command == "fetch" && len(rest) == 1:
		return w.fetch(ctx, stdout, rest[0])
	}
	return errUsage
}

// serve answers HTTP until ctx is done, then lets running requests end.
func serve(ctx context.Context, w workload, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	listen := flags.String("listen", ":8080", "")
	if err := flags.Parse(args); err != nil || flags.NArg() != 0 {
		return errUsage
	}

	server := &http.Server{
		Addr:              *listen,
		Handler:           w.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      fetchTimeout + 5*time.Second,
		IdleTimeout:       time.Minute,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving HTTP on %s: %w", *listen, err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return fmt.Errorf("ending open requests: %w", err)
	}
	return nil
}

// countAs counts as the arguments say.
func countAs(ctx context.Context, stdout io.Writer, args []string) error {
	flags := flag.NewFlagSet("count", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	pause := flags.Duration("pause", 100*time.Millisecond, "")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 || *pause <= 0 {
		return errUsage
	}
	return count(ctx, stdout, flags.Arg(0), *pause)
}
