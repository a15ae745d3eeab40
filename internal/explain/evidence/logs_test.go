// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/platform/statedir"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const machine = "i-0123456789abcdef0"

// hostLogs are logs in a new state directory, with what a file of the kubelet holds.
func hostLogs(t *testing.T, kubelet string) HostLogs {
	t.Helper()
	dir := statedir.Dir(t.TempDir())
	path := filepath.Join(dir.MachineLogs(machine), "kubelet.log")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(kubelet), 0o600); err != nil {
		t.Fatal(err)
	}
	return HostLogs{Dir: dir, Now: noon}
}

func texts(evidence []diagnosis.Evidence) string {
	var all []string
	for _, e := range evidence {
		all = append(all, e.Time.Format(time.TimeOnly)+" "+e.Text)
	}
	return strings.Join(all, "\n")
}

func TestKubeletLog(t *testing.T) {
	t.Parallel()
	h := hostLogs(t, `E1120 11:50:00.000000     100 a.go:1] "too old"
I1120 11:59:30.000000     100 a.go:1] "goes well"
E1120 11:59:31.000000     100 kubelet.go:1] "Unable to register mirror pod because node is not registered yet" err="x"
E1120 11:59:32.000000     100 a.go:1] "first"
its second line
E1120 11:59:33.000000     100 a.go:1] "`+strings.Repeat("x", 3*keptBytes)+`"
`)
	found, err := h.Kubelet(t.Context(), machine, noon.Add(-time.Minute))
	if err != nil || len(found) != 3 {
		t.Fatalf("%v:\n%s", err, texts(found))
	}
	if got, want := texts(found[:2]), "11:59:32 E1120 11:59:32.000000     100 a.go:1] \"first\"\n11:59:32 its second line"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if len(found[2].Text) > keptBytes+len("…") {
		t.Errorf("%d bytes are kept", len(found[2].Text))
	}
	if found, err := h.Kubelet(t.Context(), "i-00000000000000000", noon); err != nil || len(found) > 0 {
		t.Errorf("of a machine without logs: %v, %v", found, err)
	}
	if found, err := h.Tokens(t.Context(), "home", machine, noon); err != nil || len(found) > 0 {
		t.Errorf("of a cluster without logs: %v, %v", found, err)
	}
}

// Of many lines the newest are kept.
func TestKubeletLogIsBounded(t *testing.T) {
	t.Parallel()
	h := hostLogs(t, strings.Repeat("E1120 11:59:30.000000     100 a.go:1] \"x\"\n", 3*keptLines)+"E1120 11:59:59.000000     100 a.go:1] \"last\"\n")
	found, err := h.Kubelet(t.Context(), machine, noon.Add(-time.Minute))
	if err != nil || len(found) != keptLines || !strings.Contains(found[keptLines-1].Text, "last") {
		t.Errorf("%d lines, %v", len(found), err)
	}
}

// A file that a machine has made as large as it likes is read from its end, and not as a whole.
func TestHugeLogIsReadFromItsEnd(t *testing.T) {
	t.Parallel()
	h := hostLogs(t, "E1120 11:59:30.000000     100 a.go:1] \"far away\"\n")
	path := filepath.Join(h.Dir.MachineLogs(machine), "kubelet.log")
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	const last = "\nE1120 11:59:59.000000     100 a.go:1] \"last\"\n"
	if _, err := file.WriteAt([]byte(last), tailBytes); err != nil { // a hole is before it
		t.Fatal(err)
	}
	found, err := h.Kubelet(t.Context(), machine, noon.Add(-time.Minute))
	if err != nil || len(found) == 0 || !strings.Contains(found[len(found)-1].Text, "last") || strings.Contains(texts(found), "far away") {
		t.Errorf("%d lines, %v: %.200q", len(found), err, texts(found))
	}
}

// A machine whose token was refused, and then let in, is let in.
func TestTokenThatIsLetInLater(t *testing.T) {
	t.Parallel()
	denied := `time=2026-11-20T11:59:50.000Z level=WARN msg="access denied" instance=` + machine + ` rule=no-entry saw=x fix=y` + "\n"
	granted := strings.NewReplacer("access denied", "access granted", ":50.000Z", ":55.000Z").Replace(denied)
	for text, want := range map[string]int{denied: 1, denied + granted: 0, granted + strings.Replace(denied, ":50.000Z", ":58.000Z", 1): 1} {
		h := HostLogs{Dir: statedir.Dir(t.TempDir()), Now: noon}
		path := filepath.Join(h.Dir.Cluster("home").Logs(), "authenticator.log")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := h.Tokens(t.Context(), "home", machine, noon.Add(-time.Minute)); err != nil || len(found) != want {
			t.Errorf("%d, want %d, %v of\n%s", len(found), want, err, text)
		}
	}
}

func TestAuditLine(t *testing.T) {
	t.Parallel()
	const line = `{"kind":"Event","stage":"ResponseComplete","verb":"create","user":{"username":"system:node:node-1"},"objectRef":{"resource":"nodes","name":"node-2"},"responseStatus":{"code":403,"message":"node \"node-1\" is not allowed to modify node \"node-2\""}}`
	e, ok := auditLine([]byte(line), "node-1")
	if !ok || e.Code != "403/nodes" || e.Object != "nodes/node-2" || !strings.Contains(e.Text, "is not allowed to modify node") {
		t.Errorf("%+v, %v", e, ok)
	}
	for name, other := range map[string]string{
		"of another node": strings.ReplaceAll(line, "system:node:node-1", "system:node:node-12"),
		"that went well":  strings.ReplaceAll(line, "403", "200"),
		"not found":       strings.ReplaceAll(line, "403", "404"),
		"not complete":    strings.ReplaceAll(line, "ResponseComplete", "RequestReceived"),
		"a user's text":   strings.ReplaceAll(line, `"username":"system:node:node-1"`, `"username":"x","groups":["system:node:node-1"]`),
		"no JSON":         "system:node:node-1",
	} {
		if e, ok := auditLine([]byte(other), "node-1"); ok {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestTokenLine(t *testing.T) {
	t.Parallel()
	line := `time=2026-11-20T11:59:59.000Z level=WARN msg="access denied" result=uknown_user status=403 arn="arn:aws:sts::1:assumed-role/r/rule=x" instance=` + machine + ` rule=no-entry saw="a \"b\" rule=principal-id" fix="make one"`
	e, ok := tokenLine([]byte(line), machine)
	if !ok || e.Code != "no-entry" || e.Cause != "M-IAM-01" || e.Text != `a "b" rule=principal-id; make one` {
		t.Errorf("%+v, %v", e, ok)
	}
	if e, ok := tokenLine([]byte(strings.ReplaceAll(line, "access denied", "access granted")), machine); !ok || e.Trouble {
		t.Errorf("let in: %+v, %v", e, ok)
	}
	for name, other := range map[string]string{
		"of another machine": strings.ReplaceAll(line, "instance="+machine, "instance=i-1 client="+machine),
		"a quoted claim":     strings.ReplaceAll(line, "instance="+machine, `claim="x instance=`+machine+`"`),
	} {
		if e, ok := tokenLine([]byte(other), machine); ok {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// Whatever a log holds, it is read, and what a line is not about is not taken.
func FuzzLines(f *testing.F) {
	f.Add(`time=x msg="access denied" instance=i-1 rule="not yet valid"`)
	f.Add(`{"stage":"ResponseComplete","user":{"username":"system:node:n"},"responseStatus":{"code":403}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if e, ok := tokenLine([]byte(text), "i-1"); ok && !strings.Contains(text, "i-1") {
			t.Errorf("%+v", e)
		}
		if e, ok := auditLine([]byte(text), "n"); ok && !strings.Contains(text, "system:node:n") {
			t.Errorf("%+v", e)
		}
		if e, ok := KubeletLine([]byte(text), "machine/i-1", "x"); ok && len(e.Text) > keptBytes+len("…") {
			t.Errorf("%d bytes", len(e.Text))
		}
		count := 0
		w := lineWriter{take: func([]byte) { count++ }}
		for _, part := range []string{text[:len(text)/2], text[len(text)/2:]} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
		if count != strings.Count(text, "\n") {
			t.Errorf("%d lines of %q", count, text)
		}
	})
}
