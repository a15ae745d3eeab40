// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
)

// Asker explains again and again, for commands that show it otherwise than "muster explain" does.
type Asker struct {
	command   *explainCommand
	catalogue cause.Catalogue
}

// NewAsker returns an asker of the installation that the options name.
func NewAsker(o *terminal.Options, planes kinds.Dialers, now func() time.Time) (*Asker, error) {
	catalogue, err := cause.Default()
	if err != nil {
		return nil, err
	}
	return &Asker{&explainCommand{Options: o, planes: planes, now: now, catalogue: cause.Default, identity: askIdentity}, catalogue}, nil
}

// Ask reads everything that explanations need.
func (a *Asker) Ask(ctx context.Context) (*Answers, error) {
	q, err := a.command.ask(ctx)
	if err != nil {
		return nil, err
	}
	return &Answers{question: q, catalogue: a.catalogue}, nil
}

// Answers explain by what was read at a moment. Their methods may be called at the same time.
type Answers struct {
	catalogue cause.Catalogue

	mu       sync.Mutex // a snapshot makes its indexes when they are first needed
	question *question
}

// Snapshot is what was read.
func (a *Answers) Snapshot() *evidence.Snapshot { return a.question.snapshot }

// APIs are the clusters' own API servers, by the spec.name of the cluster, as far as there is a way to them.
func (a *Answers) APIs() map[string]client.Reader { return a.question.apis }

// About reports whether the options leave a cluster in.
func (a *Answers) About(cluster string) bool { return a.question.about(cluster) }

// Overview explains all that is wrong, as "muster explain" does.
func (a *Answers) Overview(ctx context.Context) diagnosis.Overview {
	a.mu.Lock()
	defer a.mu.Unlock()
	reports, _ := a.question.everything(ctx, a.catalogue)
	return a.question.overview(reports)
}

// Explain explains one object, as "muster explain KIND NAME" does. A usage error says that there is no such kind or object.
func (a *Answers) Explain(ctx context.Context, kind, name string) (diagnosis.Report, error) {
	if kindOf(kind) == "" {
		return diagnosis.Report{}, terminal.UsageError{Err: fmt.Errorf("there is no kind %q; there are: %s", kind, strings.Join(kindNames(), ", "))}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	reports, _, err := a.question.explain(ctx, a.catalogue, []string{kind, name})
	if err != nil {
		return diagnosis.Report{}, err
	}
	return reports[0], nil
}
