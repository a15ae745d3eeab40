// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/platform/logs"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/version"
)

const (
	// mostObjects is how many objects of a kind are in an archive.
	mostObjects = 1000
	// mostMachines is how many machines' logs are: first those that are explained.
	mostMachines = 16
)

// Config is what an archive is made from.
type Config struct {
	// Reports are the diagnosis, with what could not be looked at.
	Reports diagnosis.Overview
	// Facts that the reports were decided by.
	Facts    []diagnosis.Facts
	Snapshot *evidence.Snapshot
	// Secrets are the names of Secrets as NAMESPACE/NAME, by cluster.
	Secrets map[string][]string
	// Status is what muster status says; nil if there is none, for the reason in NoStatus.
	Status   any
	NoStatus string
	// Dir is the state directory whose logs are read; empty for none.
	Dir statedir.Dir
	Now time.Time
}

// Make reads the logs, and makes the archive.
func Make(ctx context.Context, cfg Config) *Archive {
	a := New(cfg.Now)
	a.AddText("README.txt", readme)
	never(a)
	a.AddJSON("diagnosis.json", cfg.Reports)
	a.AddJSON("evidence.json", facts(cfg.Facts))
	if cfg.Status == nil {
		a.LeaveOut("status.json", cfg.NoStatus)
	} else {
		a.AddJSON("status.json", cfg.Status)
	}
	a.AddJSON("versions.json", map[string]string{
		"muster": version.Version, "kubernetes": release.Default().Version, "etcd": version.Etcd, "containerd": version.Containerd, "runc": version.Runc, "cni": version.CNI,
		"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
	})
	s := cfg.Snapshot
	objects(a, "management/clusters.json", s.Clusters)
	objects(a, "management/nodegroups.json", s.Groups)
	objects(a, "management/machines.json", s.Machines)
	objects(a, "management/updates.json", s.Updates)
	for _, name := range slices.Sorted(maps.Keys(s.Of)) {
		ofCluster(a, v1alpha1.ClusterSlug(name), s.Of[name], cfg.Secrets[name])
	}
	for _, unseen := range cfg.Reports.Unseen {
		a.LeaveOut(unseen.What, unseen.Why)
	}
	if cfg.Dir != "" {
		addLogs(ctx, a, cfg)
	}
	return a
}

const readme = `This archive is what muster explain read to say what is wrong with an installation.

Read it before you send it. contents.json lists its files, and what was left out and why. Secrets are not in it, keys,
tokens and values with the name of a secret were taken out of all files; a secret that has neither the form of one nor a
name beside it, such as a password that a script printed, cannot be known.

diagnosis.json   what is wrong: causes with evidence and fix, steps, what could not be seen
evidence.json    all evidence about the objects that are explained
status.json      what muster status says
versions.json    versions of the programs
management/      objects of the management plane
clusters/        Nodes, certificate signing requests and Events of each cluster; the names of its Secrets
logs/            the ends of the logs of the account, the clusters and the machines
`

// never notes what no archive has.
func never(a *Archive) {
	for _, one := range []LeftOut{
		{"contents of Secrets", "only their names are listed, in clusters/NAME/secrets.txt"},
		{"logs of pods", "an application may write secrets that no program can tell from other text"},
		{"keys, certificates, kubeconfigs, credentials and databases of the state directory", "they are not read"},
		{"user data of machines, node groups and launch templates", "it may hold secrets of any form"},
		{"bodies of requests and answers in audit logs, and queries of their addresses", "they may hold secrets of any form"},
	} {
		a.LeaveOut(one.What, one.Why)
	}
}

// fact is what is written of the facts about an object.
type fact struct {
	Kind     string               `json:"kind"`
	Name     string               `json:"name"`
	Healthy  bool                 `json:"healthy"`
	Since    time.Time            `json:"since,omitzero"`
	Evidence []diagnosis.Evidence `json:"evidence"`
	Parts    []fact               `json:"parts,omitempty"`
	Unseen   []diagnosis.Unseen   `json:"unseen,omitempty"`
}

func facts(all []diagnosis.Facts) []fact {
	out := make([]fact, 0, len(all))
	for _, f := range all {
		out = append(out, fact{Kind: f.Kind, Name: f.Name, Healthy: f.Healthy, Since: f.Since, Evidence: f.Evidence, Parts: facts(f.Parts), Unseen: f.Unseen})
	}
	return out
}

// objects adds a list of objects of one kind.
func objects[T any](a *Archive, name string, all []T) {
	if len(all) > mostObjects {
		a.LeaveOut(fmt.Sprintf("%d objects of %s", len(all)-mostObjects, name), fmt.Sprintf("of each kind the first %d are there", mostObjects))
		all = all[:mostObjects]
	}
	if len(all) > 0 {
		a.AddJSON(name, map[string]any{"items": all})
	}
}

// ofCluster adds the objects of a cluster.
func ofCluster(a *Archive, name string, of evidence.Cluster, secrets []string) {
	folder := "clusters/" + name + "/"
	objects(a, folder+"nodes.json", of.Nodes)
	objects(a, folder+"requests.json", of.Requests)
	var events []any
	for _, request := range slices.Sorted(maps.Keys(of.Events)) {
		for _, e := range of.Events[request] {
			events = append(events, e)
		}
	}
	objects(a, folder+"events.json", events)
	if len(secrets) > 0 {
		a.AddText(folder+"secrets.txt", strings.Join(secrets, "\n")+"\n")
	}
}

// addLogs adds the logs of the account, of the clusters of the snapshot, and of machines.
func addLogs(ctx context.Context, a *Archive, cfg Config) {
	for _, source := range logs.Components(cfg.Dir) {
		a.AddLog(ctx, "logs/account/"+source.Name+".log", source)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Snapshot.Of)) {
		slug := v1alpha1.ClusterSlug(name)
		seen := map[string]int{}
		for _, source := range logs.ClusterComponents(cfg.Dir.Cluster(slug)) {
			file := "logs/clusters/" + slug + "/" + source.Name
			if seen[source.Name]++; seen[source.Name] > 1 { // the audit logs of several API servers have one name
				file = fmt.Sprintf("%s-%d", file, seen[source.Name])
			}
			a.AddLog(ctx, file+".log", source)
		}
	}
	machines := machinesOf(cfg)
	for _, id := range machines[:min(len(machines), mostMachines)] {
		for _, source := range logs.Machine(cfg.Dir, id) {
			a.AddLog(ctx, "logs/machines/"+id+"/"+source.Name+".log", source)
		}
	}
	if more := len(machines) - mostMachines; more > 0 {
		a.LeaveOut(fmt.Sprintf("logs of %d machines", more), fmt.Sprintf("the logs of %d machines are there, first those that are explained: muster explain machine ID --bundle FILE has those of another", mostMachines))
	}
}

// machinesOf are the machines whose logs may be read: first those that are explained, then the newest. Where the
// management plane was not read, those on the disk.
func machinesOf(cfg Config) []string {
	if cfg.Snapshot.At.IsZero() {
		return onDisk(cfg.Dir)
	}
	explained := map[string]bool{}
	for _, f := range cfg.Facts {
		for _, part := range append([]diagnosis.Facts{f}, f.Parts...) {
			explained[part.Names["$MACHINE"]] = true
		}
	}
	ours := slices.DeleteFunc(slices.Clone(cfg.Snapshot.Machines), func(m v1alpha1.Machine) bool {
		_, ok := cfg.Snapshot.Of[m.Spec.ClusterName]
		return !ok || !m.Spec.Provider.Can(v1alpha1.KeepLogs)
	})
	slices.SortStableFunc(ours, func(x, y v1alpha1.Machine) int {
		switch {
		case explained[x.Name] && !explained[y.Name]:
			return -1
		case explained[y.Name] && !explained[x.Name]:
			return 1
		}
		return y.CreationTimestamp.Compare(x.CreationTimestamp.Time)
	})
	names := make([]string, len(ours))
	for i := range ours {
		names[i] = ours[i].Name
	}
	return names
}

// onDisk are the machines that have a directory.
func onDisk(dir statedir.Dir) []string {
	entries, _ := os.ReadDir(dir.Machines()) // without a directory the list is empty
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), "i-") {
			names = append(names, entry.Name())
		}
	}
	return names
}
