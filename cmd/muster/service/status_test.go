// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/runner"
)

// Of machines that are not as they should be it is told where to look further; of the others nothing.
func TestStatusOfTroubledMachines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		message, out, talk string
	}{
		"well":    {"", "", ""},
		"in need": {"it is on its way in", "\nMACHINE   NODE   PHASE     MESSAGE\ni-1       -      Joining   it is on its way in\n", "What goes on in a machine is in its log: muster logs MACHINE\n"},
	} {
		var out, talk bytes.Buffer
		machines := []servicestatus.Machine{{Name: "i-1", Phase: "Joining", Message: test.message}}
		if err := printTroubledMachines(&terminal.Options{Streams: terminal.Streams{Out: &out, Err: &talk}}, machines); err != nil {
			t.Fatal(err)
		}
		if out.String() != test.out || talk.String() != test.talk {
			t.Errorf("%s: printed %q, said %q", name, &out, &talk)
		}
	}
}

// Problems of the account are printed though all clusters are as asked.
func TestStatusNotes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	const note = "127.0.0.1:443 is in use by nginx (process 7), so service account issuers are not served there: stop that program"
	if err := printStatus(&terminal.Options{Streams: terminal.Streams{Out: &out, Err: &out}}, servicestatus.Status{Notes: []string{note}, UnlimitedMemory: "muster does not run as root"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{note, "API servers run without a memory limit: muster does not run as root"} {
		if !strings.Contains(out.String(), "\nNote: "+want+".\n") {
			t.Errorf("printed %s, want %s", &out, want)
		}
	}
}

// It is said which groups' machines are what on the host.
func TestStatusOfNodeGroups(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := printCluster(&terminal.Options{Streams: terminal.Streams{Out: &out, Err: &out}}, servicestatus.Cluster{NodeGroups: []servicestatus.NodeGroup{
		{Name: "default", Provider: "local", Version: "1.36", Isolation: "none", Desired: 2, Machines: 2, Ready: 1, Message: "1 of 2 machines is Ready"},
		{Name: "many", Provider: "simulated", Desired: 100, Machines: 100, Ready: 100},
		{Name: "tenants", Provider: "local", Isolation: "user-namespace"},
	}}, clitest.Noon)
	const want = `
NODE GROUP   PROVIDER    VERSION   ISOLATION        DESIRED   MACHINES   READY   MESSAGE
default      local       1.36      none             2         2          1       1 of 2 machines is Ready
many         simulated   -         -                100       100        100     -
tenants      local       -         user-namespace   0         0          0       -
`
	if _, groups, _ := strings.Cut(out.String(), "\n"); err != nil || groups != want {
		t.Errorf("%v, printed\n%s\nwant\n%s", err, &out, want)
	}
}

// SINCE is about the process, also if the service has found it running; without a process it is about the state.
func TestStatusOfProcesses(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	ago := func(d time.Duration) time.Time { return clitest.Noon.Add(-d) }
	err := printComponents(&terminal.Options{Streams: terminal.Streams{Out: &out}}, []runner.Status{
		{Name: "etcd", State: runner.Ready, PID: 7, User: 2013265952, Restarts: 2, Since: ago(time.Minute), Started: ago(50 * time.Hour)},
		{Name: "webhook-proxy", State: runner.Ready, PID: 8, Since: ago(time.Minute), Started: ago(time.Minute)},
		{Name: "kube-scheduler", State: runner.Backoff, Restarts: 3, Since: ago(5 * time.Second), Message: "it ended"},
	}, clitest.Noon)
	want := "COMPONENT        STATE     PROCESS   USER         RESTARTS   SINCE   MESSAGE\n" +
		"etcd             Ready     7         2013265952   2          2d2h    -\n" +
		"webhook-proxy    Ready     8         root         0          60s     -\n" +
		"kube-scheduler   Backoff   -         -            3          5s      it ended\n"
	if err != nil || out.String() != want {
		t.Errorf("%v, printed\n%s\nwant\n%s", err, &out, want)
	}
}
