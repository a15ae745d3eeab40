// SPDX-License-Identifier: Apache-2.0

// Muster-pkcs11 signs with a key in a PKCS #11 token for the process that started it. It is a process of its own
// because it loads a library of the token's vendor. It greets with the public key or with what is wrong, then answers
// requests, one JSON object a line, until its standard input ends:
//
//	muster-pkcs11 --module FILE --token LABEL --key-label LABEL --pin-file FILE </dev/null
//
// is thus a way to see whether everything is in place.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	c, err := parse(args)
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "muster-pkcs11:", err)
		}
		return 2
	}
	in, out, err := private()
	if err != nil {
		fmt.Fprintln(os.Stderr, "muster-pkcs11:", err)
		return 1
	}
	// Its parent says when it ends: signals to the parent's whole group must not keep it from signing what it has
	// begun.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)

	t, err := open(c)
	if err != nil {
		_ = put(out, greeting{Version: version, Error: fault(err)})
		_, _ = io.Copy(io.Discard, in) // the parent reads first, then lets it end
		return 1
	}
	if err := serve(in, out, t); err != nil {
		fmt.Fprintln(os.Stderr, "muster-pkcs11:", err)
		return 1
	}
	return 0
}

func parse(args []string) (config, error) {
	var c config
	flags := flag.NewFlagSet("muster-pkcs11", flag.ContinueOnError)
	flags.StringVar(&c.module, "module", "", "the vendor's PKCS #11 library")
	flags.StringVar(&c.token, "token", "", "label of the token")
	flags.StringVar(&c.keyLabel, "key-label", "", "label of the private key")
	flags.StringVar(&c.keyID, "key-id", "", "ID of the private key, in hexadecimal")
	flags.StringVar(&c.pinFile, "pin-file", "", "file with the PIN, for nobody else to read")
	flags.IntVar(&c.sessions, "sessions", 16, "most signatures at once")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, errors.New("arguments are not wanted")
	}
	return c, c.check()
}

// private takes standard input and output away from the library: what it prints there goes to standard error. And it
// keeps what is in memory, the PIN or a key in software, out of core files.
func private() (in, out *os.File, err error) {
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return nil, nil, fmt.Errorf("turning core files off: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = null.Close() }()
	for _, move := range []struct {
		to   **os.File
		name string
		fd   int
		with int
	}{{&in, "requests", syscall.Stdin, int(null.Fd())}, {&out, "answers", syscall.Stdout, syscall.Stderr}} {
		fd, err := syscall.Dup(move.fd)
		if err != nil {
			return nil, nil, fmt.Errorf("keeping %s private: %w", move.name, err)
		}
		syscall.CloseOnExec(fd)
		if err := syscall.Dup3(move.with, move.fd, 0); err != nil {
			return nil, nil, fmt.Errorf("keeping %s private: %w", move.name, err)
		}
		*move.to = os.NewFile(uintptr(fd), move.name)
	}
	return in, out, nil
}
