// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"muster.dev/muster/test/promise"
)

// observer is the policy of a certificate controller that writes nothing but its lease. Each pair of replicas has a
// lease.
const observer = `apiVersion: certificates.muster.dev/v1alpha1
kind: CertificateControllerConfiguration
mode: observe
signers: [{name: kubernetes.io/kubelet-serving}]
inventory: {sources: [{nodeStatus: {}}]}
register: {namespace: NAMESPACE}
leaderElection: {enabled: true, namespace: NAMESPACE, name: leader}
`

// replica is a process of the certificate controller.
type replica struct {
	cmd           *exec.Cmd
	leads, stands *said
	out           *printed
	ended         chan struct{}
}

// said is closed once a program has printed a text.
type said struct {
	text string
	once sync.Once
	at   chan struct{}
}

// printed looks for what a program says, line by line.
type printed struct {
	watch   []*said
	pending []byte
	all     bytes.Buffer
}

// Write implements io.Writer.
func (p *printed) Write(raw []byte) (int, error) {
	p.all.Write(raw)
	p.pending = append(p.pending, raw...)
	for {
		line, rest, whole := bytes.Cut(p.pending, []byte("\n"))
		if !whole {
			return len(raw), nil
		}
		for _, s := range p.watch {
			if bytes.Contains(line, []byte(s.text)) {
				s.once.Do(func() { close(s.at) })
			}
		}
		p.pending = rest
	}
}

// leaders are pairs of replicas: one replica leads and the other stands by.
type leaders struct{ done sync.WaitGroup }

// startLeaders starts pairs of replicas and stops those that lead, as a debugger or a hypervisor does it. They go on,
// one after the other, when the other replica of the pair leads. That takes as long as a lease, and other promises are
// asked for meanwhile.
func (w *promises) startLeaders() *leaders {
	w.t.Helper()
	var namespaces strings.Builder
	for n := range promisedTimes {
		fmt.Fprintf(&namespaces, "---\n{apiVersion: v1, kind: Namespace, metadata: {name: leader-%d}}\n", n)
	}
	w.apply(namespaces.String())
	pairs := make([][2]*replica, promisedTimes)
	for n := range promisedTimes {
		policy := filepath.Join(w.t.TempDir(), "policy.yaml")
		if err := os.WriteFile(policy, []byte(strings.ReplaceAll(observer, "NAMESPACE", fmt.Sprintf("leader-%d", n))), 0o600); err != nil {
			w.t.Fatal(err)
		}
		pairs[n][0] = w.startReplica(policy)
		w.waits(pairs[n][0], pairs[n][0].leads)
		pairs[n][1] = w.startReplica(policy)
	}
	for _, pair := range pairs {
		w.waits(pair[1], pair[1].stands)
	}
	l := &leaders{}
	for _, pair := range pairs {
		if err := pair[0].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			w.t.Fatal(err)
		}
		l.done.Go(func() { w.replaced(pair[0], pair[1], time.Now()) })
		w.pause(300 * time.Millisecond) // so that they do not all go on in the same moment
	}
	return l
}

// replaced waits for the next leader, and has the stopped one go on then.
func (w *promises) replaced(first, second *replica, stopped time.Time) {
	select {
	case <-second.leads.at:
		w.tally.add(promise.LeaderReplaced, "a leader was stopped", time.Since(stopped))
	case <-time.After(patience):
		w.tally.t.Errorf("no other replica leads after %s", patience)
	}
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		w.tally.t.Error(err)
	}
	began := time.Now()
	select {
	case <-first.ended:
		w.tally.add(promise.LeaderFenced, "a leader that was stopped goes on", time.Since(began))
	case <-time.After(patience):
		w.tally.t.Errorf("a leader that was stopped leads on beside the other after %s", patience)
	}
}

func (l *leaders) fenced(w *promises) {
	w.t.Helper()
	l.done.Wait()
}

// waits returns once a replica has printed something.
func (w *promises) waits(r *replica, s *said) {
	w.t.Helper()
	select {
	case <-s.at:
	case <-r.ended:
		w.t.Fatalf("a replica has ended before it said %q:\n%s", s.text, r.out.all.String())
	case <-time.After(patience):
		w.t.Fatalf("a replica has not said %q after %s", s.text, patience)
	}
}

// startReplica starts a certificate controller, which ends with the story.
func (w *promises) startReplica(policy string) *replica {
	w.t.Helper()
	r := &replica{leads: &said{text: "this replica leads", at: make(chan struct{})}, stands: &said{text: "another replica leads", at: make(chan struct{})}, ended: make(chan struct{})}
	r.out = &printed{watch: []*said{r.leads, r.stands}}
	r.cmd = exec.Command(filepath.Join(w.bin, "muster-certificate-controller"), "--kubeconfig="+w.iam.cluster().Kubeconfig(), "--config="+policy)
	r.cmd.Stdout, r.cmd.Stderr = r.out, r.out
	if err := r.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { defer close(r.ended); _ = r.cmd.Wait() }()
	w.t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.ended
	})
	return r
}
