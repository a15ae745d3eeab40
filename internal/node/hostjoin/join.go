// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/systemd"
)

// Join makes the host a node, and returns when it is Ready. Run again it takes up where it was, and puts right what is
// missing.
func (h *Host) Join(ctx context.Context, r JoinRequest) (Report, error) {
	h.begin()
	unlock, err := h.lock()
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer h.aside.Wait()
	defer cancel()
	p, err := h.plan(ctx, r)
	if err != nil {
		return h.report(p.ledger), err
	}
	if err := h.storage(ctx, &p, r); err != nil {
		return h.report(p.ledger), err
	}
	j := &joining{Host: h, Plan: p, request: r}
	if err := j.make(ctx); err != nil {
		return h.report(j.ledger), err
	}
	if err := j.becomes(ctx); err != nil {
		return h.report(j.ledger), err
	}
	return h.report(j.ledger), j.finish(ctx)
}

// storage prepares disks. A directory on which a disk is mounted then does not belong to the join: it stays mounted
// when the host leaves.
func (h *Host) storage(ctx context.Context, p *Plan, r JoinRequest) error {
	if r.Storage == nil || p.joined {
		return nil
	}
	if err := h.disk.change("prepare disks"); err != nil {
		return err
	}
	if err := h.wait(func() error { return r.Storage(ctx, func(what string) { h.done("disks", "%s", what) }) }); err != nil {
		return err
	}
	for i := range p.ledger.Trees {
		tree := &p.ledger.Trees[i]
		mounted, err := h.disk.mountPoint(tree.Path)
		if err != nil {
			return err
		}
		if mounted {
			tree.Keep = true
			p.ledger.Directories = slices.DeleteFunc(p.ledger.Directories, func(dir string) bool { return dir == tree.Path })
		}
	}
	return nil
}

// joining is a join under way.
type joining struct {
	*Host
	Plan
	request JoinRequest
	// changed are the files that programs which run may not have seen.
	changed map[string]bool
	// later is how many files are to be placed when the kubelet has been started.
	later int
	// over are requests for certificates that are not this join's business any more.
	over map[string]bool
	// started is when the kubelet was, if this join did that.
	started time.Time
}

// copies are the programs that are new on the host.
func (j *joining) copies() []artifact {
	return slices.DeleteFunc(slices.Clone(j.artifacts), func(a artifact) bool { return a.copyOf == "" || a.linkTo != "" })
}

// make puts on the host what the kubelet needs to start, and starts it. Before any of it, the ledger lists all of it,
// and also what comes later.
func (j *joining) make(ctx context.Context) error {
	changed, later := map[string]bool{}, 0
	if j.ledger.Unsettled {
		for _, f := range j.Files {
			changed[f.Path] = true
		}
	}
	j.ledger.Unsettled = j.ledger.Unsettled || len(j.artifacts) > 0
	j.ledger.Drained = false // pods may come again
	for _, a := range j.copies() {
		delete(j.ledger.Hashes, a.path) // not known again before it is hashed
	}
	if err := j.save(j.ledger); err != nil {
		return err
	}
	for _, path := range j.ledger.Files {
		if err := j.disk.sweep(path); err != nil {
			return err
		}
	}
	for _, a := range j.artifacts {
		if err := ctx.Err(); err != nil {
			return err
		}
		changed[a.path] = true
		if a.late {
			later++
			continue
		}
		if err := j.disk.place(a); err != nil {
			return err
		}
	}
	j.changed, j.later = changed, later
	j.done("files", "%d written, %d as they should be", len(j.artifacts)-later, len(j.Files)-len(j.artifacts))
	requests := soon(&j.aside, func() ([]certificatesv1.CertificateSigningRequest, error) { return j.requests(ctx), nil })
	kubelet, err := j.read(ctx)
	if err != nil {
		return err
	}
	if err := j.containerd(ctx); err != nil {
		return err
	}
	if err := j.images(ctx, func(name string) bool { return name == sandboxImage }); err != nil {
		return err
	}
	before, err := await(j.Host, requests)
	if err != nil {
		return err
	}
	return j.kubelet(ctx, kubelet, before)
}

// read makes systemd read the units as they are on disk. systemd reads a unit that it does not know when it is first
// asked about it, so a host that is not a node yet needs no daemon-reload, which reads all units of the host again and
// runs all generators. It returns the kubelet's unit.
func (j *joining) read(ctx context.Context) (kubelet systemd.Unit, err error) {
	var units []systemd.Unit
	err = j.wait(func() (err error) {
		units, err = j.Units.ShowAll(ctx, j.Services...)
		return err
	})
	if err != nil {
		return kubelet, err
	}
	if at := slices.Index(j.Services, kubeletUnit); at >= 0 {
		kubelet = units[at]
	}
	if slices.ContainsFunc(units, func(u systemd.Unit) bool { return u.Outdated || !u.Exists() }) {
		return kubelet, j.do(ctx, systemd.Reload)
	}
	return kubelet, nil
}

// containerd starts the join's own.
func (j *joining) containerd(ctx context.Context) error {
	if !j.Self.OwnContainerd {
		return nil
	}
	if err := j.run(ctx, containerdUnit, j.changes("/etc/containerd/", unitDir+"/"+containerdUnit)); err != nil {
		return err
	}
	var version string
	err := j.wait(func() error {
		for {
			var err error
			if version, err = j.Runtime.Version(ctx); err == nil {
				return nil
			}
			if unit, showErr := j.Units.Show(ctx, containerdUnit); showErr == nil && unit.Trouble() != "" {
				return fmt.Errorf("containerd.service %s: journalctl -u containerd tells why", unit.Trouble())
			}
			if !sleep(ctx, pollInterval) {
				return fmt.Errorf("containerd was started and does not answer: %w", err)
			}
		}
	})
	if err != nil {
		return err
	}
	j.done("containerd", "%s answers", version)
	return nil
}

// run has a unit run, with the files that there are now.
func (j *joining) run(ctx context.Context, unit string, changed bool) error {
	return j.do(ctx, startOrRestart(changed), unit)
}

// changes reports whether any of the files below has changed.
func (j *joining) changes(prefixes ...string) bool {
	for path := range j.changed {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			return true
		}
	}
	return false
}

// sandboxImage is the archive of the image without which no pod starts. Others can come while the kubelet asks for its
// certificate.
const sandboxImage = "pause.tar"

// images brings those that are shipped with muster into the join's own containerd, which has no registry to pull them
// from. Files that were brought there from this very file are not brought again.
func (j *joining) images(ctx context.Context, chosen func(name string) bool) error {
	if !j.Self.OwnContainerd {
		return nil
	}
	archives, err := filepath.Glob(filepath.Join(j.Programs, "images", "*.tar"))
	if err != nil {
		return fmt.Errorf("listing images of %s: %w", j.Programs, err)
	}
	count := 0
	for _, archive := range archives {
		if !chosen(filepath.Base(archive)) {
			continue
		}
		info, err := os.Stat(archive)
		if err != nil {
			return fmt.Errorf("looking at image %s: %w", filepath.Base(archive), err)
		}
		// In containerd's own directory, so that both are there or neither.
		mark := "/var/lib/containerd/.muster-" + strings.TrimSuffix(filepath.Base(archive), ".tar")
		version := fmt.Sprintf("%d bytes of %s\n", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano))
		if before, err := os.ReadFile(j.disk.at(mark)); err == nil && string(before) == version {
			continue
		}
		if err := j.disk.change("import " + filepath.Base(archive)); err != nil {
			return err
		}
		// Not unpacked, and pinned, as on every machine of muster's; see the node agent.
		err = j.wait(func() error {
			_, err := j.Run(ctx, filepath.Join(j.Programs, "ctr"), "--address="+j.disk.at(render.ContainerdSocket), "--namespace=k8s.io",
				"images", "import", "--local", "--no-unpack", "--label=io.cri-containerd.pinned=pinned", archive)
			return err
		})
		if err != nil {
			return fmt.Errorf("importing image %s: %w", filepath.Base(archive), err)
		}
		if err := atomicfile.Write(j.disk.at(mark), []byte(version), 0o600); err != nil {
			return err
		}
		count++
	}
	if count > 0 {
		j.done("images", "%d imported", count)
	}
	return nil
}

// kubelet starts the kubelet. A kubelet that does not rotate its certificate leaves the key of a failed attempt behind,
// and would make the very request again that was refused (pkg/kubelet/certificate/bootstrap): so that key is removed
// first.
func (j *joining) kubelet(ctx context.Context, before systemd.Unit, requests []certificatesv1.CertificateSigningRequest) error {
	if !j.joined && before.ActiveState != "active" {
		if err := j.disk.remove(pendingKey); err != nil {
			return err
		}
	}
	changed := j.changes("/etc/eks/", "/etc/kubernetes/kubelet/", "/etc/kubernetes/pki/", "/var/lib/kubelet/", "/etc/muster/", unitDir+"/kubelet.service.d/", unitDir+"/"+kubeletUnit)
	runs := before.Active() && !changed
	j.over = notOwn(requests, runs)
	now := j.Now()
	if err := j.run(ctx, kubeletUnit, changed); err != nil { // also a kubelet that systemd has started again meanwhile
		return err
	}
	if !runs {
		j.started = now.Truncate(time.Second) // the cluster tells whole seconds
		j.done("kubelet", "started")
	} else {
		j.done("kubelet", "runs already")
	}
	return nil
}

// finish removes the token, which is of no more use to anybody here, and writes down what the files are without it and
// that the host has joined. The kubelet still looks where it was: should its certificate expire, another one may be put
// there (muster node watch).
func (j *joining) finish(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.spec.Join.Token = ""
	files, err := j.Render(j.spec, j.Self)
	if err != nil {
		return err
	}
	for _, file := range files {
		if !j.ledger.lists(file.Path) {
			continue
		}
		if err := j.replaceFile(&j.ledger, artifact{path: file.Path, mode: file.Mode, content: file.Content}); err != nil {
			return err
		}
	}
	if err := j.disk.remove(render.PathBootstrapKubeconfig); err != nil {
		return err
	}
	if j.later > 0 {
		j.done("programs", "%d more installed", j.later)
	}
	if err := j.watch(ctx); err != nil {
		return err
	}
	j.ledger.Unsettled = false
	if j.ledger.Joined.IsZero() {
		j.ledger.Joined = j.Now().UTC().Truncate(time.Second)
	}
	return j.save(j.ledger)
}

// replaceFile puts the last word of a file in its place, and the ledger knows it throughout.
func (h *Host) replaceFile(l *Ledger, a artifact) error {
	found, err := h.disk.look(a)
	if err != nil {
		return err
	}
	if found != same {
		l.note(a.path, a.fingerprint())
		if err := h.save(*l); err != nil {
			return err
		}
		if err := h.disk.place(a); err != nil {
			return err
		}
	}
	l.settle(a.path, a.fingerprint())
	return nil
}

// exists reports whether there is anything by that name.
func (d disk) exists(path string) bool {
	_, err := os.Lstat(d.at(path))
	return !errors.Is(err, fs.ErrNotExist)
}

const pollInterval = 20 * time.Millisecond
