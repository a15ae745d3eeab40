// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStarted(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	self := strings.TrimSpace(string(raw))
	at, ok := started("/proc", self)
	if !ok || time.Since(at) < 0 || time.Since(at) > time.Hour {
		t.Errorf("this test runs since %s, %t", at, ok)
	}
	// A process of a dishonest name, one that has ended, and two of which the older counts.
	proc := t.TempDir()
	for pid, stat := range map[string]string{
		"1": "1 (kubelet) x) S", "2": "2 (kubelet) Z", "3": "3 (kubelet) S", "4": "4 (kubelet) S", "5": "5 (kubelet-proxy) S", "6": "6 (kubelet", "7": "7 (kubelet) S 1",
	} {
		if err := os.Mkdir(filepath.Join(proc, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.Count(stat, " ") == 2 && strings.HasSuffix(stat, ") S") || strings.HasSuffix(stat, "Z") || strings.HasSuffix(stat, "x) S") {
			stat += strings.Repeat(" 0", 18) + fmt.Sprintf(" %d00", map[string]int{"1": 1, "2": 2, "3": 4, "4": 3, "5": 1}[pid]) + strings.Repeat(" 0", 30) + "\n"
		}
		write(t, filepath.Join(proc, pid, "stat"), []byte(stat), 0o600)
	}
	older, ok := started(proc, "kubelet")
	if younger, _ := started(proc, "kubelet-proxy"); !ok || older.Sub(younger).Round(100*time.Millisecond) != 2*time.Second {
		t.Errorf("since %s, %t", older, ok)
	}
	if _, ok := started(proc, "none"); ok {
		t.Error("what does not run has started")
	}
}
