// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReadStat(t *testing.T) {
	t.Parallel()
	got, err := ReadStat("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	session, _, _ := syscall.Syscall(syscall.SYS_GETSID, 0, 0, 0)
	if got.Name+"\n" != string(comm) || got.State == 'Z' || got.Parent != os.Getppid() || got.Session != int(session) || got.code == "0" || got.begin == got.end {
		t.Errorf("%+v, of the program %q in session %d", got, comm, session)
	}
	if age := time.Since(got.Started()); age < 0 || age > time.Hour {
		t.Errorf("this test began %s ago", age)
	}
	if _, err := ReadStat(t.TempDir()); !os.IsNotExist(err) {
		t.Errorf("of no process: %v", err)
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	fields := strings.Fields("S 1 2 3 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 9 0 4711 0 0 0 4096 8192 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 100 200")
	with := func(field int, value string) string {
		changed := append([]string(nil), fields...)
		changed[field-3] = value
		return strings.Join(changed, " ")
	}
	good := strings.Join(fields, " ")
	for name, test := range map[string]struct {
		raw, refusal string
		want         Stat
	}{
		"a plain one":          {"17 (kubelet) " + good + " 0\n", "", Stat{"kubelet", 'S', 1, 3, 4711, false, 9, "4096", "100", "200"}},
		"a dishonest name":     {"17 (kubelet) Z 1 (x) " + good, "", Stat{"kubelet) Z 1 (x", 'S', 1, 3, 4711, false, 9, "4096", "100", "200"}},
		"a kernel's thread":    {"2 (kthreadd) " + with(9, "2129984"), "", Stat{"kthreadd", 'S', 1, 3, 4711, true, 9, "4096", "100", "200"}},
		"no name":              {"17 kubelet " + good, "it names no program", Stat{}},
		"a name that is open":  {"17 (kubelet " + good, "it names no program", Stat{}},
		"cut off":              {"17 (kubelet) S 1 2 3", "it has 6 fields, not 51 and more", Stat{}},
		"empty":                {"", "it names no program", Stat{}},
		"a parent of letters":  {"17 (kubelet) " + with(4, "x"), "parent: ", Stat{}},
		"a session of letters": {"17 (kubelet) " + with(6, "x"), "session: ", Stat{}},
		"flags of letters":     {"17 (kubelet) " + with(9, "x"), "flags: ", Stat{}},
		"threads of letters":   {"17 (kubelet) " + with(20, "x"), "threads: ", Stat{}},
		"a start of letters":   {"17 (kubelet) " + with(22, "x"), "start: ", Stat{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseStat([]byte(test.raw))
			if got != test.want || (err == nil) != (test.refusal == "") || err != nil && !strings.HasPrefix(err.Error(), test.refusal) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
