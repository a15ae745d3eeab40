// SPDX-License-Identifier: Apache-2.0

package nodeevidence_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster.dev/muster/internal/explain/nodeevidence"
)

// Whatever is in the place of a file, the node is explained without waiting for it, and no secret of a file is told.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2hunter2"
	pipe := func(w *world, name string) {
		w.remove(name)
		if err := syscall.Mkfifo(filepath.Join(w.root, name), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	for name, change := range map[string]func(w *world, file string){
		"a pipe":       pipe,
		"a directory":  func(w *world, file string) { w.remove(file); w.write(file+"/x", "") },
		"itself":       func(w *world, file string) { w.remove(file); link(w, file, file) },
		"a device":     func(w *world, file string) { w.remove(file); link(w, "/dev/zero", file) },
		"very large":   func(w *world, file string) { w.write(file, strings.Repeat("a: "+secret+"\n", 100_000)) },
		"zeros":        func(w *world, file string) { w.write(file, strings.Repeat("\x00", 4096)) },
		"many aliases": func(w *world, file string) { w.write(file, bomb) },
		"a secret":     func(w *world, file string) { w.write(file, "token: "+secret+"\n\t{") },
		"escapes":      func(w *world, file string) { w.write(file, "\x1b]0;pwned\x07\xff") },
		"empty":        func(w *world, file string) { w.write(file, "") },
	} {
		for _, file := range []string{"/etc/kubernetes/kubelet.conf", "/var/lib/kubelet/config.yaml", "/etc/kubernetes/pki/ca.crt", "/var/lib/kubelet/pki/kubelet-client-current.pem", "/var/lib/kubelet/kubeadm-flags.env", "/proc/uptime", "/etc/environment", "/etc/cni/net.d/10-x.conflist"} {
			t.Run(name+" for "+filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "kubeadm")
				change(w, file)
				r := w.report()
				for _, e := range r.Other {
					if strings.Contains(e.Text, secret) {
						t.Errorf("a secret is told: %q", e.Text)
					}
				}
				for _, u := range r.Unseen {
					if strings.Contains(u.Why, secret) {
						t.Errorf("a secret is told: %q", u.Why)
					}
				}
			})
		}
	}
}

func link(w *world, to, file string) {
	w.t.Helper()
	if to == file {
		to = filepath.Base(file)
	}
	if err := os.Symlink(to, filepath.Join(w.root, file)); err != nil {
		w.t.Fatal(err)
	}
}

// bomb is YAML that is large once its aliases are followed.
var bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + func() string {
	var b strings.Builder
	for c := 'b'; c < 'k'; c++ {
		p := string(c - 1)
		b.WriteString(string(c) + ": &" + string(c) + " [*" + strings.Join(strings.Split(strings.Repeat(p, 9), ""), ",*") + "]\n")
	}
	return b.String()
}()

// Secrets in a log are taken out of the evidence, and a line has a bound.
func TestLogsAreCleaned(t *testing.T) {
	t.Parallel()
	const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	w := newWorld(t, "al2023")
	w.ended("kubelet.service", "failed", "failed", `E1120 password="`+secret+`" `+strings.Repeat("x", 100_000))
	w.logs(`E1120 aws_secret_access_key=` + secret)
	r := w.report()
	for _, e := range r.Other {
		if strings.Contains(e.Text, secret) || len(e.Text) > 3000 {
			t.Errorf("%d bytes: %.200q", len(e.Text), e.Text)
		}
	}
	if len(r.Other) == 0 {
		t.Error("there is no evidence")
	}
}

// A secret is found before a text is cut, and a key that is on several lines of a log.
func TestSecretsThatAreCut(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("aB3/", 16)
	for name, change := range map[string]func(w *world){
		"a long value": func(w *world) {
			w.ended("kubelet.service", "failed", "failed", `E1120 password="`+strings.Repeat("hunter2-aB3/", 300)+`"`)
		},
		"a key": func(w *world) {
			w.ended("kubelet.service", "failed", "failed", "-----BEGIN RSA PRIVATE KEY-----", body, body, "-----END RSA PRIVATE KEY-----", "E1120 it ends")
		},
		"the end of a key": func(w *world) {
			w.ended("nodeadm-config.service", "failed", "failed", body, body, "-----END RSA PRIVATE KEY-----", "E1120 it ends")
		},
	} {
		w := newWorld(t, "al2023")
		change(w)
		r := w.report()
		told := fmt.Sprintf("%+v", r)
		if strings.Contains(told, "aB3/") || !strings.Contains(told, "[left out: ") && !strings.Contains(told, "it ends") {
			t.Errorf("%s: %s", name, told)
		}
	}
}

// A journal that hangs is asked once, and the node is explained by the rest.
func TestJournalThatHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "al2023")
	w.ended("kubelet.service", "failed", "failed", "E1120 never read")
	w.silent = fmt.Errorf("reading the journal: %w", context.DeadlineExceeded)
	r := w.report()
	if w.looks != 1 || len(r.Unseen) == 0 || len(r.Other) == 0 && len(r.Causes) == 0 {
		t.Errorf("asked %d times: %+v", w.looks, r)
	}
}

// A host that has nothing of a node is none.
func TestNoNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "kubeadm")
	for _, name := range []string{"/etc/kubernetes", "/var/lib/kubelet"} {
		w.remove(name)
	}
	delete(w.units, "kubelet.service")
	if _, err := nodeevidence.Read(t.Context(), w.config()); !errors.Is(err, nodeevidence.ErrNoNode) {
		t.Error(err)
	}
}

// A machine of Muster's has no journal: the kubelet logs to a file.
func TestLogInAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "muster")
	w.plain, w.healthz = true, errors.New("connection refused")
	w.write("/var/log/kubelet.log", "I1120 11:59:58.000000 1 x.go:1] \"fine\"\n"+strings.Replace(swapIsOn, "11:50:00", "11:59:59", 1)+"\n")
	if err := os.Chtimes(filepath.Join(w.root, "/var/log/kubelet.log"), noon, noon); err != nil {
		t.Fatal(err)
	}
	if got := verdict(w.report()); got != "Cause M-NODE-55" {
		t.Error(got)
	}
}
