// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/explain/cause"
)

const log = `{"Action":"output","Test":"TestExplain/x","Output":"    explain_test.go:240: explained M-NODE-47 of a machine after 3.2 s from report\n"}
{"Action":"output","Test":"TestExplain/x","Output":"    explain_test.go:240: explained M-NODE-47 of a nodegroup after 4.0 s from machine,report\n"}
something else: explained M-NODE-48
`

func causes() []cause.Cause {
	return []cause.Cause{
		{ID: "M-NODE-47", Title: "first", State: cause.Named, Injected: "TestExplain"},
		{ID: "M-NODE-48", Title: "second", State: cause.Named, Writer: "x", Signals: []cause.Signal{{Source: cause.FromReport}, {Source: cause.FromKubelet}, {Source: cause.FromReport}}},
		{ID: "M-NODE-49", Title: "third", State: cause.Impossible},
		{ID: "M-NODE-50", Title: "fourth", State: cause.Later},
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := table(&out, causes(), rows(log)); err != nil {
		t.Fatal(err)
	}
	const want = `CAUSE      NAMED           SECONDS  OF         FROM                       WHAT IT IS
M-NODE-47  injected        3.2      machine    report                     first
M-NODE-47  injected        4.0      nodegroup  machine,report             first
M-NODE-48  yes             -        -          identifier,kubelet,report  second
M-NODE-49  cannot be here  -        -          -                          third
M-NODE-50  not yet         -        -          -                          fourth
1 of 4 causes happened for real and were named
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

// A cause whose story did not have it is a failure, after the table.
func TestMissing(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := table(&out, causes(), rows(""))
	if err == nil || !strings.Contains(err.Error(), "M-NODE-47") || !strings.Contains(out.String(), "not seen") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run([]string{path}, &out); err == nil || !strings.Contains(out.String(), "injected") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := run(nil, &out); err == nil {
		t.Error("without a log")
	}
	if err := run([]string{path + "x"}, &out); err == nil {
		t.Error("of a log that is not there")
	}
}
