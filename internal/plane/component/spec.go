// SPDX-License-Identifier: Apache-2.0

package component

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Spec is one process: its program and arguments, its files, and the probe of its readiness.
type Spec struct {
	// Name is unique within a cluster, and within the account's own; it names the log and the folder of files too.
	Name string `json:"name"`
	// Cluster is the namespace of the cluster that it belongs to; empty for a process of the account.
	Cluster string `json:"cluster,omitempty"`
	// Path of the program, absolute.
	Path string `json:"path"`
	// Args follow the program's name; flags are sorted, so that equal settings make equal specs.
	Args []string `json:"args,omitempty"`
	// NextArgs follow Args. They are no reason to start a process again: one that runs has them from its next start on.
	NextArgs []string `json:"nextArgs,omitempty"`
	// Env is added to a minimal environment, as "NAME=value", sorted.
	Env []string `json:"env,omitempty"`
	// Files are written before the process starts.
	Files []File `json:"files,omitempty"`
	// Directories are made before the process starts, with mode 0700.
	Directories []string `json:"directories,omitempty"`
	// Probe reports whether it serves; without one a process is ready as soon as it runs.
	Probe *Probe `json:"probe,omitempty"`
	// Pause is how long it may answer nobody because it does what it was asked to do: it hangs that much later.
	Pause metav1.Duration `json:"pause,omitzero"`
	// Address that it listens on, as host:port; empty if on none, or on sockets only.
	Address string `json:"address,omitempty"`
	// Credentials are the files with certificates and keys that it reads, sorted: all that it needs besides Files.
	Credentials []string `json:"credentials,omitempty"`
	// View is what it sees where it runs as a user of its own; without one it runs as its supervisor does.
	View *View `json:"view,omitempty"`
	// Grace is how long it may take to end once it is told to; the supervisor's own if 0.
	Grace metav1.Duration `json:"grace,omitzero"`
	// Memory is the memory in bytes that it may have, together with the processes that it starts; not limited if 0.
	Memory int64 `json:"memory,omitempty"`
	// HandsOver is of a process that takes its work over from the one before, which ends by itself once its work is done:
	// it is started beside that one.
	HandsOver bool `json:"handsOver,omitempty"`
	// KeepsProgram has a process go on though the file of its program was replaced, until it ends by itself or the spec
	// is wanted without this.
	KeepsProgram bool `json:"keepsProgram,omitempty"`
	// After names the specs that must be ready before this one starts.
	After []string `json:"after,omitempty"`
}

// clusterPrefix begins the process name of everything that belongs to a cluster.
const clusterPrefix = "cluster/"

// Process is the name that is unique within the account: a cluster's components are cluster/NAMESPACE/NAME, the
// account's own NAME.
func (s Spec) Process() string { return ProcessPrefix(s.Cluster) + s.Name }

// ProcessPrefix begins the process names of all components of a cluster; it is empty for the account's own.
func ProcessPrefix(cluster string) string {
	if cluster == "" {
		return ""
	}
	return clusterPrefix + cluster + "/"
}

// SplitProcess is the cluster and the name of the component that a process name says; the cluster is empty for the
// account's own.
func SplitProcess(process string) (cluster, name string) {
	if rest, ok := strings.CutPrefix(process, clusterPrefix); ok {
		if cluster, name, ok := strings.Cut(rest, "/"); ok {
			return cluster, name
		}
	}
	return "", process
}

// File is written atomically before its process starts.
type File struct {
	Path    string      `json:"path"`
	Mode    fs.FileMode `json:"mode"`
	Content string      `json:"content"`
	// Secret content is never printed.
	Secret bool `json:"secret,omitempty"`
}

// Probe is an HTTP GET whose answer 200 means ready.
type Probe struct {
	// URL asked. With a Socket, its host is only a name.
	URL string `json:"url"`
	// Socket is the unix socket to ask on, instead of the URL's host.
	Socket string `json:"socket,omitempty"`
	// CAFile verifies the answer's certificate.
	CAFile string `json:"caFile,omitempty"`
	// CredentialFile holds the client's certificate and key, in one file.
	CredentialFile string `json:"credentialFile,omitempty"`
}

// Hash is the same for two specs exactly when a process of one need not be restarted to become the other.
func (s Spec) Hash() string {
	s.After, s.Grace = nil, metav1.Duration{} // how it starts and ends matters to no running process
	s.Pause = metav1.Duration{}               // nor how long it is waited for
	s.Memory, s.KeepsProgram = 0, false       // change while it runs
	s.View, s.NextArgs = nil, nil             // one that runs goes on as it was started
	raw, err := json.Marshal(s)
	if err != nil {
		panic("component: a Spec is plain data and always marshals: " + err.Error())
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// Arguments are those that a process is started with: Args and NextArgs.
func (s Spec) Arguments() []string { return slices.Concat(s.Args, s.NextArgs) }

// Redacted is the spec as people may see it: without the content of secret files.
func (s Spec) Redacted() Spec {
	s.Files = slices.Clone(s.Files)
	for i := range s.Files {
		if s.Files[i].Secret {
			s.Files[i].Content = "(secret)"
		}
	}
	return s
}

// flags renders a program's flags, sorted by name.
func flags(values map[string]string) []string {
	args := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		args = append(args, "--"+name+"="+values[name])
	}
	return args
}
