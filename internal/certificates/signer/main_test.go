// SPDX-License-Identifier: Apache-2.0

package signer_test

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// The roles of the test program when it is started by a test.
const (
	envChild  = "SIGNER_TEST_CHILD"  // a child that does not behave: nonsense of that name
	envParent = "SIGNER_TEST_PARENT" // a program that signs with the key of that configuration
)

// programs are the child and the faulty library, built once for all tests.
var programs built

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envChild) != "":
		misbehave(os.Getenv(envChild))
		os.Exit(0)
	case os.Getenv(envParent) != "":
		if err := parent(context.Background(), os.Getenv(envParent)); err != nil { //nolint:forbidigo // no test runs here
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	var err error
	if programs.dir, err = os.MkdirTemp("", "muster-signer-test"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(programs.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
