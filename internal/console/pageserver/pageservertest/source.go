// SPDX-License-Identifier: Apache-2.0

package pageservertest

import (
	"context"
	"fmt"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/console/pageserver"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/platform/decision"
)

// Evil is a text that does harm in a page that takes it for more than text.
const Evil = `"><script>window.harmed=1</script><img src=x onerror="window.harmed=1">'{{.}}` + "\u202e\x1b[31m</title>`${window.harmed=1}`javascript:window.harmed=1"

// EvilLine is a line of a log of that kind, with a secret.
const EvilLine = "E1120 " + `<img src=x onerror="window.harmed=1"> password=hunter2hunter2` + " \x1b[31mred\u202e"

// Hostile is a small installation in which all that a machine or a user writes is Evil.
func Hostile() view.Facts {
	f := World()
	f.Clusters[0].Status.Endpoint, f.Clusters[0].Status.Version = Evil, Evil
	f.Clusters[0].Status.Conditions = []metav1.Condition{condition(metav1.ConditionFalse, Evil, Evil, 0)}
	f.Groups[0].Spec.Name, f.Groups[0].Status.Version = Evil, Evil
	f.Groups[0].Status.Conditions = []metav1.Condition{condition(metav1.ConditionFalse, Evil, Evil, 0)}
	m := &f.Machines[0]
	m.Name, m.Spec.NodeGroup, m.Status.NodeName, m.Spec.ImageID = Evil, Evil, Evil, Evil
	m.Status.Addresses = []corev1.NodeAddress{{Type: Evil, Address: Evil}, {Type: corev1.NodeInternalIP, Address: "javascript:window.harmed=1"}}
	m.Status.Conditions = []metav1.Condition{condition(metav1.ConditionFalse, Evil, Evil, 0)}
	m.Status.Join = append(m.Status.Join, v1alpha1.JoinRecord{Step: Evil, Time: metav1.NewMicroTime(Noon)})
	f.Subnets[1].Spec.AvailabilityZone = Evil
	of := f.Of[home]
	of.Nodes[0].Name = Evil
	of.Nodes[0].Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: Evil, OSImage: Evil, KernelVersion: Evil, ContainerRuntimeVersion: Evil}
	of.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: Evil, Status: Evil, Reason: Evil, Message: Evil}}
	of.Reviews[0] = csrview.Review{
		Name: Evil, SignerName: Evil, Requester: csrview.Requester{Username: Evil}, Asked: csrview.Asked{CommonName: "system:node:" + Evil}, State: Evil, Why: Evil, Rule: Evil,
		Decision: &decision.Decision{Checks: []decision.Check{{Rule: Evil, Outcome: Evil, Detail: Evil, Hint: Evil}}},
	}
	of.Certificates[0].Owner, of.Certificates[0].Signer, of.Certificates[0].Request = Evil, Evil, Evil
	f.Of[home] = of
	evidence := []diagnosis.Evidence{{Source: Evil, Object: Evil, Look: Evil, Code: Evil, Text: Evil + " password=hunter2hunter2"}}
	f.Wrong = diagnosis.Overview{
		Reports: []diagnosis.Report{{Kind: "machine", Name: Evil, Verdict: diagnosis.Found, Causes: []diagnosis.Finding{{Cause: Evil, Title: Evil, Sentence: Evil, Fix: Evil, Evidence: evidence}}, Other: evidence}},
		Unseen:  []diagnosis.Unseen{{What: Evil, Why: Evil}},
	}
	u := &f.Updates[0]
	u.Name, u.Spec.Type, u.Status.Message, u.Spec.NodeGroup = Evil, Evil, Evil, Evil
	u.Status.Steps[0].Name, u.Status.Steps[0].Message = Evil, Evil
	return f
}

// Source is a source of facts that a test may change while they are shown.
type Source struct {
	mu    sync.Mutex
	facts view.Facts
	err   error
	reads int
	hangs bool
	// Lines are those of all machines' logs.
	Lines []string
	// More has lines that come while logs are followed.
	More chan string
}

// NewSource returns a source of facts.
func NewSource(f view.Facts) *Source { return &Source{facts: f, More: make(chan string)} }

// Set has the next reading be of other facts, or fail.
func (s *Source) Set(f view.Facts, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts, s.err = f, err
}

// Hang has readings last until they are given up.
func (s *Source) Hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs = true
}

// Reads is how often it was read.
func (s *Source) Reads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// Read implements pageserver.Source.
func (s *Source) Read(ctx context.Context) (pageserver.Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.hangs {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	return reading(s.facts), nil
}

// Objects implements pageserver.Source. It knows machines.
func (s *Source) Objects(_ context.Context, kind, name, _ string) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind != "machines" {
		return nil, fmt.Errorf("unknown kind %q: %w", kind, pageserver.ErrNotFound)
	}
	for i := range s.facts.Machines {
		if s.facts.Machines[i].Name == name {
			return s.facts.Machines[i], nil
		}
	}
	if name != "" {
		return nil, fmt.Errorf("machine %q: %w", name, pageserver.ErrNotFound)
	}
	return v1alpha1.MachineList{Items: s.facts.Machines}, nil
}

// Logs implements pageserver.Source.
func (s *Source) Logs(ctx context.Context, _ string, lines int, follow bool, out io.Writer) error {
	for _, line := range s.Lines[max(0, len(s.Lines)-lines):] {
		if _, err := io.WriteString(out, line+"\n"); err != nil {
			return err
		}
	}
	for follow {
		select {
		case line := <-s.More:
			if _, err := io.WriteString(out, line+"\n"); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// reading is a reading of facts.
type reading view.Facts

// Facts implements pageserver.Reading.
func (r reading) Facts() view.Facts { return view.Facts(r) }

// Explain implements pageserver.Reading.
func (r reading) Explain(_ context.Context, kind, name string) (diagnosis.Report, error) {
	for _, report := range r.Wrong.Reports {
		if report.Kind == kind && report.Name == name {
			return report, nil
		}
	}
	if kind != "machine" {
		return diagnosis.Report{}, fmt.Errorf("%s %q: %w", kind, name, pageserver.ErrNotFound)
	}
	verdict := diagnosis.Healthy
	if name == Joining {
		verdict = diagnosis.OnItsWay
	}
	return diagnosis.Report{Kind: kind, Name: name, Verdict: verdict, At: r.At}, nil
}
