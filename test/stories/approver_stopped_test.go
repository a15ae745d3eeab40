// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// The replica that leads is stopped for longer than its lease, as a debugger, a hypervisor or a full disk does it, and
// goes on after another has taken over and worked. From its first moment it is not ready, it says and writes nothing,
// and it ends. All Events of the other replica about many requests of one person are written, if later.
//
//story:about certificates platform/leaderlease
func TestLeaderThatWasStopped(t *testing.T) {
	t.Parallel()
	a := newApprover(t, "approve-and-sign")
	a.machines(3)
	first := a.run("replica-1", a.policy)
	a.eventually("the first replica leads", func() error { return a.printed(first.Log, "this replica leads") })
	second := a.run("replica-2", a.policy)
	a.eventually("the second replica stands by", func() error { return a.printed(second.Log, "another replica leads") })
	health := a.healthAddress(first)
	alice := a.person("alice")
	_, stranger, _ := worker(3)
	left := func(name string) { a.create(alice, request(name, signerClient, pkitest.Kubelet(t, stranger))) }
	left("before")
	a.told("before", "Normal CertificateLeftPending", "requester")
	a.join(1, "one")
	if code, text := a.ready(health); code != http.StatusOK {
		t.Fatalf("before it is stopped, it is not ready: %d %s", code, text)
	}

	if err := first.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	a.eventually("the second replica leads", func() error { return a.printed(second.Log, "this replica leads") })
	const many = 120
	for n := range many {
		left(fmt.Sprintf("left-%03d", n))
	}
	a.join(2, "two")
	_, node, _ := worker(2)
	_, _, foreign := worker(1)
	a.create(a.node(2), request("foreign", signerServing, pkitest.Kubelet(t, node, node, foreign)))
	a.becomes("foreign", "Denied/address-assigned")
	took := a.eventually("each is told", func() error {
		told := map[string]int{}
		for _, line := range a.toldOnce() {
			name, _, _ := strings.Cut(line, "-")
			name, _, _ = strings.Cut(name, " ")
			told[name]++
		}
		if told["left"] != many || told["foreign"] != 1 || told["before"] != 2 {
			return fmt.Errorf("%d of %d are told; in all %v", told["left"], many, told)
		}
		return nil
	})
	t.Logf("%d requests of one person were told %s after the last was made", many, took.Round(time.Second))

	told, requests, lines := a.toldOnce(), a.requestVersions(), len(a.read(first.Log))
	delete(a.replicas, first.Name) // it is to end
	continued := time.Now()
	if err := first.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code, text, err := a.askReady(health); err == nil && code == http.StatusOK {
		t.Errorf("at the first look it says that it is ready: %s", text)
	}
	select {
	case <-first.Ended():
		t.Logf("it ended %s after it was continued", time.Since(continued).Round(time.Millisecond))
	case <-time.After(patience): // TestPromises measures how soon
		t.Error("it leads on beside the other")
		if code, text, err := a.askReady(health); err == nil {
			t.Errorf("it says of itself %d %s", code, text)
		}
		<-first.Ended()
	}
	if now := a.toldOnce(); !slices.Equal(told, now) {
		t.Errorf("it said more: of %d Events there are %d now", len(told), len(now))
	}
	if now := a.requestVersions(); !slices.Equal(requests, now) {
		t.Errorf("what there was is\n%s\nand now\n%s", requests, now)
	}
	said := a.read(first.Log)[lines:]
	t.Logf("it says\n%s", said[:min(len(said), 3000)])
	if n := strings.Count(said, "\n"); n > 20 || strings.Contains(said, "certificate request not handled") {
		t.Errorf("it says so in %d lines", n)
	}
	left("after")
	a.told("after", "Normal CertificateLeftPending", "requester")
	if code, text := a.ready(a.healthAddress(second)); code != http.StatusOK {
		t.Errorf("the other is not ready: %d %s", code, text)
	}
}

// toldOnce is each Event about a request that the controller wrote, with how often, sorted.
func (a *approver) toldOnce() (lines []string) {
	a.t.Helper()
	list, err := a.plane.Admin().CoreV1().Events(corev1.NamespaceDefault).List(a.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=CertificateSigningRequest"})
	if err != nil {
		a.t.Fatal(err)
	}
	for i := range list.Items {
		e := &list.Items[i]
		lines = append(lines, fmt.Sprintf("%s %s %d %s", e.InvolvedObject.Name, e.Reason, e.Count, e.Name))
	}
	slices.Sort(lines)
	return lines
}

// requestVersions are all requests, as they were written last.
func (a *approver) requestVersions() (lines []string) {
	a.t.Helper()
	for _, csr := range a.list() {
		lines = append(lines, csr.Name+" "+csr.ResourceVersion)
	}
	slices.Sort(lines)
	return lines
}
