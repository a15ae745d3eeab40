// SPDX-License-Identifier: Apache-2.0

package pageservertest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/console/blueprint"
	"muster.dev/muster/internal/console/pageserver"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/iam/viewer"
	"muster.dev/muster/internal/plane/logquery"
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
	hostileAccess(&f)
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
	// Kept are the events that the log store has of each cluster.
	Kept []*evaluation.Event
	// Unkept is why queries about kept logs fail; nil if they do not. Hold has each query wait until it may be read from, if it is there.
	Unkept error
	Hold   chan struct{}

	asking int // how many queries run

	// Plans are the blueprints that were to be made, and Refuses why they are not; nil if they are. Waits has them wait for a cluster.
	Plans   []blueprint.Blueprint
	Refuses error
	Waits   bool
	// By is who made the last one. Viewers are the IAM identities by their tokens, and May their rights by the ARN.
	By      *viewer.Viewer
	Viewers map[string]viewer.Viewer
	May     map[string]view.Rights
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

// Query implements pageserver.Source, by the events that are kept. It knows the clusters of the facts.
func (s *Source) Query(ctx context.Context, cluster string, q logquery.Question) (pageserver.LogAnswer, error) {
	s.ask(1)
	defer s.ask(-1)
	if s.Hold != nil {
		select {
		case <-s.Hold:
		case <-ctx.Done():
			return pageserver.LogAnswer{}, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Unkept != nil {
		return pageserver.LogAnswer{}, s.Unkept
	}
	if !slices.ContainsFunc(s.facts.Clusters, func(c v1alpha1.Cluster) bool { return c.Spec.Name == cluster }) {
		return pageserver.LogAnswer{}, fmt.Errorf("there is no cluster %q: %w", cluster, pageserver.ErrNotFound)
	}
	limited := &logsinsights.Query{Commands: append(slices.Clone(q.Query.Commands), &logsinsights.Limit{Count: q.Limit})}
	result, err := evaluation.Run(limited, func(yield func(*evaluation.Event, error) bool) {
		for _, e := range s.Kept {
			if at := time.UnixMilli(e.Timestamp); !at.Before(q.Start) && !at.After(q.End) && !yield(e, nil) {
				return
			}
		}
	}, evaluation.Options{Now: q.Now, Check: ctx.Err})
	return pageserver.LogAnswer{Cluster: cluster, Types: []v1alpha1.LoggingType{"api", "audit"}, Result: result}, err
}

// ask counts a query that begins or ends.
func (s *Source) ask(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking += by
}

// Asking is how many queries run.
func (s *Source) Asking() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asking
}

// Create implements pageserver.Source.
func (s *Source) Create(_ context.Context, by *viewer.Viewer, plan blueprint.Blueprint) (view.Made, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Refuses != nil {
		return view.Made{}, s.Refuses
	}
	s.Plans, s.By = append(s.Plans, plan), by
	made := view.Made{Waiting: s.Waits}
	if !plan.Exists {
		made.Objects = append(made.Objects, view.MadeObject{Kind: "cluster", Name: plan.Name, Did: "created"})
	}
	for _, g := range plan.Groups {
		did := "created"
		if s.Waits {
			did = "waiting"
		}
		made.Objects = append(made.Objects, view.MadeObject{Kind: "nodegroup", Name: g.Name, Did: did})
	}
	return made, nil
}

// Prove implements pageserver.Source.
func (s *Source) Prove(_ context.Context, p viewer.Proof) (viewer.Viewer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, ok := s.Viewers[p.Token]
	if !ok || !viewer.IsAudience(p.Audience) {
		return who, fmt.Errorf("%w: it is not a token for %s", pageserver.ErrForbidden, p.Audience)
	}
	return who, nil
}

// Rights implements pageserver.Source.
func (s *Source) Rights(_ context.Context, by viewer.Viewer, _ view.Facts) (view.Rights, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rights, ok := s.May[by.ARN]
	if !ok {
		return rights, fmt.Errorf("%w: the key of %s has ended", pageserver.ErrForbidden, by.ARN)
	}
	return rights, nil
}

// Grant changes the rights of an IAM identity; nil ends it.
func (s *Source) Grant(arn string, rights *view.Rights) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.May, arn)
	if rights != nil {
		s.May[arn] = *rights
	}
}

// Done ends what waits for a cluster.
func (s *Source) Done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Waits = false
}

// Made are the blueprints that were made so far.
func (s *Source) Made() []blueprint.Blueprint {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.Plans)
}

// Requests are events of an audit log from the hour before Noon: one each minute, by verbs in turn.
func Requests() []*evaluation.Event {
	var all []*evaluation.Event
	for minute := range 60 {
		verb := []string{"get", "list", "watch"}[minute%3]
		all = append(all, &evaluation.Event{
			Timestamp: Noon.Add(time.Duration(minute-59) * time.Minute).UnixMilli(), Stream: "kube-apiserver-audit-1", Log: "000000000000:/aws/eks/home/cluster",
			Pointer: fmt.Sprintf("f00d-%020d", minute), Message: fmt.Sprintf(`{"verb":%q,"user":{"username":"system:node:a"},"n":%d}`, verb, minute),
			Fields: map[string]string{"verb": verb, "user.username": "system:node:a", "n": strconv.Itoa(minute)},
		})
	}
	return all
}

// HostileRequests are events in which all that a requester writes is Evil, and a secret.
func HostileRequests() []*evaluation.Event {
	all := Requests()[57:]
	for _, e := range all {
		e.Message, e.Stream = EvilLine+Evil, Evil
		e.Fields = map[string]string{"verb": Evil, "user.username": Evil, "requestObject.password": "hunter2hunter2"}
	}
	return all
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
