// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/token"
	"muster.dev/muster/internal/certificates/certificatecontroller"
)

// TestMain lets the test binary be the muster command in scripts, and what that becomes.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"muster":                      main,
		token.IAMAuthenticator:        main,
		certificatecontroller.Program: func() { os.Exit(certificatecontroller.Main(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command line the way people do. Tests that need a cluster are in test/stories.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "test", "scripts"),
		UpdateScripts:       *clitest.Update,
		RequireExplicitExec: false,
		Setup: func(env *testscript.Env) error {
			env.Setenv("MUSTER_STATE_DIR", "s") // below $WORK, and short in help texts
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits CODE COMMAND [ARG...] runs a command that is to end with that exit code, and keeps its output for stdout and
// stderr.
func exits(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	const wrapper = `code=$1; shift; "$@"; got=$?; test $got = $code || { echo "exit code $got" >&2; exit 1; }`
	if err := ts.Exec("sh", append([]string{"-c", wrapper, "sh"}, args...)...); err != nil {
		ts.Fatalf("%v: %v", args, err)
	}
}
