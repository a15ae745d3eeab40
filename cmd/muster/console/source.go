// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/explain"
	"muster.dev/muster/cmd/muster/keptlogs"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/console/pageserver"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/plane/logquery"
	"muster.dev/muster/internal/platform/logs"
	"muster.dev/muster/internal/platform/statedir"
)

const (
	// recordAge is how old the record of issued certificates may be: it is long, and certificates last for days.
	recordAge = 15 * time.Second
	// logBytes is how much of each log is read to find its last lines.
	logBytes = 4 << 20
	// registerNamespace is where the certificate controller keeps its record.
	registerNamespace = "muster-system"
)

// source reads an installation as the other commands do.
type source struct {
	*terminal.Options
	planes kinds.Dialers
	asker  *explain.Asker
	dir    statedir.Dir
	now    func() time.Time
	// recorded reads the record of issued certificates of the cluster that the options choose.
	recorded func(ctx context.Context, o *terminal.Options) ([]issued.Entry, error)

	// entries connects to the cluster that the options choose, for the kinds that say who gets in.
	entries func(o *terminal.Options) (*kinds.Client, error)

	// service answers about people who look by an IAM identity.
	service accountViewers
	euid    int
	// binDir finds the programs that are built.
	binDir func() (string, error)

	mu       sync.Mutex
	record   map[string]kept // by the spec.name of the cluster
	refusals keptRefusals
}

// kept is the record of a cluster as it was at a moment.
type kept struct {
	entries []issued.Entry
	err     error
	at      time.Time
}

// loadRecorded reads the record by the API server of the cluster.
func loadRecorded(ctx context.Context, o *terminal.Options) ([]issued.Entry, error) {
	api, err := new(kinds.Access).Clientset(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, kinds.AnswerTime)
	defer cancel()
	return issued.Load(ctx, api, registerNamespace)
}

// reading is what was read at a moment.
type reading struct {
	answers *explain.Answers
	facts   view.Facts
}

// Facts implements pageserver.Reading.
func (r *reading) Facts() view.Facts { return r.facts }

// Explain implements pageserver.Reading.
func (r *reading) Explain(ctx context.Context, kind, name string) (diagnosis.Report, error) {
	report, err := r.answers.Explain(ctx, kind, name)
	return report, notFound(err)
}

// notFound wraps errors about what is not there.
func notFound(err error) error {
	if _, ok := errors.AsType[terminal.UsageError](err); ok {
		return fmt.Errorf("%w (%w)", err, pageserver.ErrNotFound)
	}
	return err
}

// Read implements pageserver.Source.
func (s *source) Read(ctx context.Context) (pageserver.Reading, error) {
	answers, err := s.asker.Ask(ctx)
	if err != nil {
		return nil, err
	}
	snapshot := answers.Snapshot()
	f := view.Facts{
		At: snapshot.At, Of: map[string]view.Cluster{}, Wrong: answers.Overview(ctx),
		Clusters: of(answers, snapshot.Clusters, func(c *v1alpha1.Cluster) string { return c.Spec.Name }),
		Groups:   snapshot.Groups, Updates: of(answers, snapshot.Updates, func(u *v1alpha1.Update) string { return u.Spec.ClusterName }),
		Machines: of(answers, snapshot.Machines, func(m *v1alpha1.Machine) string { return m.Spec.ClusterName }),
	}
	unseen := func(what string, why error) {
		f.Wrong.Unseen = append(f.Wrong.Unseen, diagnosis.Unseen{What: what, Why: why.Error()})
	}
	if f.Subnets, err = s.subnets(ctx); err != nil {
		unseen("the zones of machines", err)
	}
	if err := s.choices(ctx, &f); err != nil {
		unseen("what a new cluster can have", err)
	}
	if f.Associations, err = s.associations(ctx, answers); err != nil {
		unseen("the roles of pods", err)
	}
	if f.Refusals, err = s.refused(ctx, slices.Sorted(maps.Keys(snapshot.Of))); err != nil {
		unseen("who was refused", err)
	}
	accesses := s.accesses(ctx, f.Clusters, snapshot.Of)
	for _, name := range slices.Sorted(maps.Keys(snapshot.Of)) { // in an order, so that what is unseen stands still
		read := snapshot.Of[name]
		c := view.Cluster{Nodes: read.Nodes, Access: accesses[name].access}
		f.Wrong.Unseen = append(f.Wrong.Unseen, accesses[name].unseen...)
		for i := range read.Requests {
			c.Reviews = append(c.Reviews, csrview.Of(&read.Requests[i], read.Events[read.Requests[i].Name]))
		}
		entries, err := s.issued(ctx, name)
		if err != nil {
			unseen("all certificates of nodes of cluster "+name, err)
		}
		c.Certificates = issuedOf(name, entries)
		used(c.Access.Tokens, entries, read)
		plane, err := authority.NewStore(s.dir.Cluster(v1alpha1.ClusterSlug(name)).PKI()).List()
		if err != nil {
			unseen("the certificates of the control plane of cluster "+name, err)
		}
		c.Certificates = append(c.Certificates, planeOf(name, plane)...)
		f.Of[name] = c
	}
	account, err := authority.NewAccountStore(s.dir.PKI()).List()
	if err != nil {
		unseen("the certificates of the account", err)
	}
	f.Of[""] = view.Cluster{Certificates: planeOf("", account)}
	return &reading{answers, f}, nil
}

// of leaves what is of clusters that are asked about, and what is of none.
func of[T any](answers *explain.Answers, all []T, cluster func(*T) string) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return cluster(&one) != "" && !answers.About(cluster(&one)) })
}

func (s *source) subnets(ctx context.Context) ([]v1alpha1.Subnet, error) {
	management, err := s.planes.Management(s.Options)
	if err != nil {
		return nil, err
	}
	var subnets v1alpha1.SubnetList
	err = management.ReadAll(ctx, &subnets)
	return subnets.Items, err
}

// associations are the roles of pods, of the clusters that are asked about.
func (s *source) associations(ctx context.Context, answers *explain.Answers) ([]v1alpha1.PodIdentityAssociation, error) {
	management, err := s.planes.Management(s.Options)
	if err != nil {
		return nil, err
	}
	var list v1alpha1.PodIdentityAssociationList
	err = management.ReadAll(ctx, &list)
	return of(answers, list.Items, func(a *v1alpha1.PodIdentityAssociation) string { return a.Spec.ClusterName }), err
}

// issued is the record of a cluster, which is at most recordAge old.
func (s *source) issued(ctx context.Context, cluster string) ([]issued.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.record[cluster]; ok && s.now().Sub(r.at) < recordAge {
		return r.entries, r.err
	}
	o := *s.Options
	o.Cluster = cluster
	entries, err := s.recorded(ctx, &o)
	if s.record == nil {
		s.record = map[string]kept{}
	}
	s.record[cluster] = kept{entries, err, s.now()}
	return entries, err
}

// issuedOf are the newest certificates of each owner and signer.
func issuedOf(cluster string, entries []issued.Entry) []view.Certificate {
	type one struct{ owner, signer string }
	seen := map[one]bool{}
	var found []view.Certificate
	for _, e := range slices.Backward(entries) { // they come oldest first
		owner := terminal.Or(e.Node, e.Subject)
		if seen[one{owner, e.Signer}] {
			continue
		}
		seen[one{owner, e.Signer}] = true
		found = append(found, view.Certificate{
			Cluster: cluster, Owner: owner, Signer: csrview.ShortSigner(e.Signer), Machine: e.Machine, Request: terminal.Or(e.CSR, "not named"), Serial: e.Serial,
			NotBefore: e.NotBefore, NotAfter: e.NotAfter,
		})
	}
	slices.SortFunc(found, func(a, b view.Certificate) int {
		return strings.Compare(a.Owner+"\x00"+a.Signer, b.Owner+"\x00"+b.Signer)
	})
	return found
}

// planeOf are the certificates of authorities and components.
func planeOf(cluster string, entries []authority.Entry) []view.Certificate {
	found := make([]view.Certificate, 0, len(entries))
	for _, e := range entries {
		found = append(found, view.Certificate{
			Cluster: cluster, Owner: e.Name, Signer: e.Authority, NotBefore: e.NotBefore, NotAfter: e.NotAfter, Renewal: e.Renewal,
			Authority: e.Authority == "", Role: e.Role,
		})
	}
	return found
}

// Objects implements pageserver.Source.
func (s *source) Objects(ctx context.Context, kind, name, cluster string) (any, error) {
	k, ok := kinds.FindKind(kind)
	if !ok {
		return nil, notFound(terminal.UsageError{Err: fmt.Errorf("unknown kind %q", kind)})
	}
	o := *s.Options
	o.Cluster = terminal.Or(cluster, o.Cluster)
	p, err := s.planes.Of(k)(&o)
	if err != nil {
		return nil, notFound(err)
	}
	objects, _, err := p.Objects(ctx, k)
	if err != nil {
		return nil, err
	}
	if o.Cluster != "" && k.OfOneCluster() {
		objects = slices.DeleteFunc(objects, func(object client.Object) bool { return !kinds.IsOf(object, o.Cluster) })
	}
	if name == "" {
		items := make([]any, 0, len(objects))
		for _, object := range objects {
			item, err := kinds.ToMap(object, p.Scheme())
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items}, nil
	}
	found, err := k.Choose(objects, []string{name})
	if err != nil {
		return nil, notFound(terminal.UsageError{Err: err})
	}
	return kinds.ToMap(found[0], p.Scheme())
}

// Query implements pageserver.Source.
func (s *source) Query(ctx context.Context, cluster string, question logquery.Question) (pageserver.LogAnswer, error) {
	o := *s.Options
	o.Cluster = terminal.Or(cluster, o.Cluster)
	own, err := o.OpenCluster()
	if err != nil {
		return pageserver.LogAnswer{}, fmt.Errorf("%w (%w)", err, pageserver.ErrNotFound)
	}
	answer, err := keptlogs.Ask(ctx, s.dir, own, question)
	return pageserver.LogAnswer{Cluster: answer.Cluster, Types: answer.Types, Result: answer.Result}, err
}

// Logs implements pageserver.Source.
func (s *source) Logs(ctx context.Context, machine string, lines int, follow bool, out io.Writer) error {
	sources := logs.Machine(s.dir, machine)
	if len(sources) == 0 {
		return fmt.Errorf("machine %s has no logs on this host yet", machine)
	}
	return logs.Copy(ctx, out, logs.Config{Sources: sources, Tail: lines, TailBytes: logBytes, Follow: follow})
}
