// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/internal/node/kubeletcheck"
	"muster.dev/muster/internal/node/localdisk"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// step names a step of the pipeline.
type step string

// The steps that have something to say.
const (
	stepJudge      step = "judge"
	stepCredential step = "credential"
	stepSettle     step = "settle"
	stepNote       step = "note"
	stepDisks      step = "disks"
	stepWrite      step = "write"
)

// pipeline makes a machine a node by what it is told: at its first boot, when it boots again, when it is told something
// else, and when a person asks for that ([Init]). The differences of these are in its fields. The steps, in order:
//
//	judge       documents are merged; what failed of the user data keeps the machine from becoming a node
//	credential  the owner of the certificate on the disk; the machine's own is brought back if that was set aside
//	settle      how the machine proves itself, by which token, and to which cluster
//	render      NodeConfig and facts become files
//	validate    the kubelet's own validation judges its configuration; notes say what is done in another way than the NodeConfig says
//	disks       instance-store disks are joined and mounted, if the machine has not joined
//	write       another node's certificate is set aside, and files are written
//
// All that can be refused is refused before disks. muster join has the last four in common with it ([ReadFacts],
// [Validate], [PrepareDisks]); its other steps are those of package hostjoin.
type pipeline struct {
	credential credential
	metadata   metadata
	layout     render.Layout
	self       render.Instance
	// keepsName refuses to make the machine another node than the one that its certificate is for: its kubelet runs.
	keepsName bool
	// root is put before the paths of disks; it is empty but in tests.
	root  string
	facts func() (render.Facts, error)
	// check runs the kubelet's own validation; nil where its program is not.
	check kubeletcheck.Run
	tool  localdisk.Run
	write func(files []render.File, joined bool, say func(string)) error
	say   func(step step, text string)
}

// metadata is what a pipeline asks instance metadata.
type metadata interface {
	roles
	apiServers
}

// become takes all steps, and returns the NodeConfig that the machine has then. Failed are parts of the user data that
// failed, a line each.
func (p pipeline) become(ctx context.Context, documents []nodeconfig.Source, failed []string) (nodeconfig.Spec, error) {
	spec, err := p.judge(documents, failed)
	if err != nil {
		return spec, err
	}
	return p.carryOut(ctx, spec)
}

// judge merges documents, and returns why the machine does not become a node if they cannot be read or other parts of
// its user data failed.
func (p pipeline) judge(documents []nodeconfig.Source, failed []string) (nodeconfig.Spec, error) {
	merged, unread := nodeconfig.Read(documents, false)
	switch {
	case len(failed) == 0:
		return merged.Spec, unread
	case unread != nil:
		return merged.Spec, errors.Join(userDataFailure(failed), unread)
	case merged.Spec.Instance.UserDataFailurePolicy != nodeconfig.Ignore:
		return merged.Spec, userDataFailure(append(failed, "to go on nevertheless, set spec.instance.userDataFailurePolicy: Ignore in a NodeConfig of "+nodeconfig.APIVersion))
	}
	p.say(stepJudge, strings.Join(failed, "; "))
	return merged.Spec, nil
}

// carryOut takes the steps after judge.
func (p pipeline) carryOut(ctx context.Context, spec nodeconfig.Spec) (nodeconfig.Spec, error) {
	name := render.NodeName(spec, p.self)
	if other, ok := p.credential.anothers(name, time.Now()); ok && p.keepsName {
		return spec, fmt.Errorf("by what this machine is told it is node %s, and its certificate is that of %s: it becomes another node when it boots, and not before", name, other)
	}
	joined, err := p.credential.regain(name, time.Now(), p.says(stepCredential))
	if err != nil {
		return spec, err
	}
	if spec, err = p.credential.prove(ctx, spec, joined, p.metadata, time.Now(), p.says(stepSettle)); err != nil {
		return spec, err
	}
	if spec, err = reachable(ctx, spec, p.metadata, p.says(stepSettle)); err != nil {
		return spec, err
	}
	if spec, err = settle(ctx, spec, joined, p.says(stepSettle)); err != nil {
		return spec, err
	}
	files, err := p.render(ctx, spec)
	if err != nil {
		return spec, err
	}
	if err := p.disks(ctx, spec, joined); err != nil {
		return spec, err
	}
	if err := p.credential.disown(name, time.Now(), p.says(stepWrite)); err != nil {
		return spec, err
	}
	return spec, p.write(files, joined, p.says(stepWrite))
}

// render makes the files, and has the kubelet's own validation judge them.
func (p pipeline) render(ctx context.Context, spec nodeconfig.Spec) ([]render.File, error) {
	facts, err := p.facts()
	if err != nil {
		return nil, err
	}
	files, err := render.Files(spec, p.self, facts, p.layout)
	if err != nil {
		return nil, err
	}
	notes, err := Validate(ctx, Rendered{Spec: spec, Instance: p.self, Facts: facts, Layout: p.layout, Files: files}, p.check)
	if len(notes) > 0 {
		p.say(stepNote, strings.Join(notes, "; "))
	}
	return files, err
}

// disks prepares instance-store disks. A node that has joined keeps its own: its programs have their data on them, and
// a disk that is mounted now would hide it.
func (p pipeline) disks(ctx context.Context, spec nodeconfig.Spec, joined bool) error {
	if joined && localdisk.Wanted(spec.Instance.LocalStorage) {
		p.say(stepDisks, "spec.instance.localStorage: this machine has joined, and its disks stay as they are")
		return nil
	}
	return localdisk.Setup(ctx, localdisk.Config{
		Root: p.root, Storage: spec.Instance.LocalStorage, Systemd: p.layout.Systemd, Run: p.tool, Say: p.says(stepDisks),
	})
}

// says is say of one step.
func (p pipeline) says(step step) func(string) {
	return func(text string) { p.say(step, text) }
}
