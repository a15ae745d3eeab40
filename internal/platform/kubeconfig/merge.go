// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig puts a cluster's contexts into the kubeconfig that a person uses, and takes them out again,
// without touching anything else in it.
package kubeconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// extension marks the entries that muster wrote, and for which state directory. It survives kubectl's own edits.
const extension = "muster.dev"

type mark struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	StateDir   string `json:"stateDir"`
	// Before is the context that was the current one when that of this cluster became it.
	Before string `json:"before,omitempty"`
}

// ErrForeign means that an entry of the same name is there, which muster did not write for this state directory.
var ErrForeign = errors.New("belongs to another cluster")

// Options says which kubeconfig is meant: the explicit file, else $KUBECONFIG, else ~/.kube/config, as for kubectl.
func Options(explicit string) *clientcmd.PathOptions {
	options := clientcmd.NewDefaultPathOptions()
	options.LoadingRules.ExplicitPath = explicit
	return options
}

// Merge adds every context of the kubeconfigs in files, with its cluster and user, or brings it up to date. The current
// context becomes the first one's when switchTo is set or none is chosen yet. Nothing is written if a context, cluster
// or user of that name is somebody else's (ErrForeign). It reports whether anything changed, and the file that holds
// the result.
func Merge(options *clientcmd.PathOptions, stateDir string, files []string, switchTo bool) (path string, changed bool, err error) {
	config, err := options.GetStartingConfig()
	if err != nil {
		return "", false, fmt.Errorf("reading kubeconfig: %w", err)
	}
	before := config.DeepCopy()
	first, entry := "", ""
	for _, file := range files {
		added, err := clientcmd.LoadFromFile(file)
		if err != nil {
			return "", false, fmt.Errorf("reading kubeconfig: %w", err)
		}
		for name, context := range added.Contexts {
			cluster, user := added.Clusters[context.Cluster], added.AuthInfos[context.AuthInfo]
			if cluster == nil || user == nil {
				return "", false, fmt.Errorf("reading kubeconfig: context %q in %s names a cluster or user that is not there", name, file)
			}
			// Each goes where it is already, or where new ones go: clientcmd writes an entry to the file it says it
			// came from.
			context.LocationOfOrigin, cluster.LocationOfOrigin, user.LocationOfOrigin = "", "", ""
			if old := config.Contexts[name]; old != nil {
				if !owned(config, name, stateDir) {
					return "", false, fmt.Errorf("context %q in your kubeconfig %w: rename it (kubectl config rename-context %s OTHER), or use another file with --kubeconfig", name, ErrForeign, name)
				}
				context.LocationOfOrigin = old.LocationOfOrigin
			}
			owner := mark{StateDir: stateDir}
			if old := config.Clusters[context.Cluster]; old != nil {
				owner.Before = markOf(old.Extensions).Before
				if !marked(old.Extensions, stateDir) {
					return "", false, fmt.Errorf("cluster %q in your kubeconfig %w: rename it, or use another file with --kubeconfig", context.Cluster, ErrForeign)
				}
				cluster.LocationOfOrigin = old.LocationOfOrigin
			}
			if old := config.AuthInfos[context.AuthInfo]; old != nil {
				if !marked(old.Extensions, stateDir) {
					return "", false, fmt.Errorf("user %q in your kubeconfig %w: rename it, or use another file with --kubeconfig", context.AuthInfo, ErrForeign)
				}
				user.LocationOfOrigin = old.LocationOfOrigin
			}
			cluster.Extensions = owner.extensions()
			user.Extensions = mark{StateDir: stateDir}.extensions()
			config.Clusters[context.Cluster] = cluster
			config.AuthInfos[context.AuthInfo] = user
			config.Contexts[name] = context
			if first == "" {
				first, entry = name, context.Cluster
			}
		}
	}
	if current := config.CurrentContext; (switchTo || current == "") && current != first {
		config.CurrentContext = first
		cluster := config.Clusters[entry]
		forget(config, stateDir, first, markOf(cluster.Extensions).Before) // it is before nothing any more
		cluster.Extensions = mark{StateDir: stateDir, Before: current}.extensions()
	}
	path = options.GetDefaultFilename()
	if context := config.Contexts[first]; context != nil && context.LocationOfOrigin != "" {
		path = context.LocationOfOrigin
	}
	return write(options, before, config, path)
}

// Remove takes out every context that was added for the state directory, with its cluster and user. If the current
// context is removed, the context that was current before it becomes current again.
func Remove(options *clientcmd.PathOptions, stateDir string) (path string, changed bool, err error) {
	return remove(options, stateDir, func(string, *clientcmdapi.Cluster) bool { return true })
}

// RemoveCluster is Remove for the contexts of one cluster: those whose entry of the cluster has that name or leads to
// that server. The server may be empty.
func RemoveCluster(options *clientcmd.PathOptions, stateDir, name, server string) (path string, changed bool, err error) {
	return remove(options, stateDir, func(entry string, cluster *clientcmdapi.Cluster) bool {
		return entry == name || server != "" && cluster.Server == server
	})
}

// remove takes out the contexts that were added for the state directory and lead to a chosen cluster.
func remove(options *clientcmd.PathOptions, stateDir string, chosen func(entry string, cluster *clientcmdapi.Cluster) bool) (path string, changed bool, err error) {
	config, err := options.GetStartingConfig()
	if err != nil {
		return "", false, fmt.Errorf("reading kubeconfig: %w", err)
	}
	before := config.DeepCopy()
	for name, context := range before.Contexts {
		if !owned(before, name, stateDir) || !chosen(context.Cluster, before.Clusters[context.Cluster]) {
			continue
		}
		back := ""
		if cluster := config.Clusters[context.Cluster]; cluster != nil { // else another context has led there, too
			back = markOf(cluster.Extensions).Before
		}
		delete(config.Contexts, name)
		delete(config.Clusters, context.Cluster)
		if user := config.AuthInfos[context.AuthInfo]; user != nil && marked(user.Extensions, stateDir) {
			delete(config.AuthInfos, context.AuthInfo) // a context of the user's own may go to our cluster as somebody else
		}
		if config.CurrentContext == name {
			config.CurrentContext = back
		}
		forget(config, stateDir, name, back)
	}
	if now := config.CurrentContext; now != before.CurrentContext && config.Contexts[now] == nil { // somebody else removed it
		config.CurrentContext = ""
	}
	return write(options, before, config, options.GetDefaultFilename())
}

func write(options *clientcmd.PathOptions, before, after *clientcmdapi.Config, path string) (string, bool, error) {
	if same(before, after) {
		return path, false, nil
	}
	if err := clientcmd.ModifyConfig(options, *after, false); err != nil {
		return path, false, fmt.Errorf("writing kubeconfig: %w", err)
	}
	// clientcmd makes new files 0600 but keeps the mode of one that others may read; it holds keys now.
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return path, true, fmt.Errorf("making kubeconfig private: %w", err)
		}
	}
	return path, true, nil
}

func same(a, b *clientcmdapi.Config) bool {
	rawA, errA := clientcmd.Write(*a)
	rawB, errB := clientcmd.Write(*b)
	return errA == nil && errB == nil && string(rawA) == string(rawB)
}

// owned reports whether the context of that name points to a cluster entry that muster wrote for the state directory.
func owned(config *clientcmdapi.Config, context, stateDir string) bool {
	c := config.Contexts[context]
	if c == nil || config.Clusters[c.Cluster] == nil {
		return false
	}
	return marked(config.Clusters[c.Cluster].Extensions, stateDir)
}

// forget has the clusters whose context came after one that is removed lead back to the one before that.
func forget(config *clientcmdapi.Config, stateDir, name, back string) {
	for _, cluster := range config.Clusters {
		if m := markOf(cluster.Extensions); m.StateDir == stateDir && m.Before == name {
			m.Before = back
			cluster.Extensions = m.extensions()
		}
	}
}

// extensions holds a mark as entries of kubeconfigs do.
func (m mark) extensions() map[string]runtime.Object {
	m.APIVersion, m.Kind = "muster.dev/v1alpha1", "Owner"
	raw, _ := json.Marshal(m) // strings alone
	return map[string]runtime.Object{extension: &runtime.Unknown{Raw: raw, ContentType: runtime.ContentTypeJSON}}
}

// markOf is the mark among an entry's extensions; empty if it has none.
func markOf(extensions map[string]runtime.Object) mark {
	var m mark
	if unknown, ok := extensions[extension].(*runtime.Unknown); ok && json.Unmarshal(unknown.Raw, &m) != nil {
		return mark{}
	}
	return m
}

// marked reports whether an entry with these extensions was written for the state directory.
func marked(extensions map[string]runtime.Object, stateDir string) bool {
	return markOf(extensions).StateDir == stateDir
}

// Current is the name of the current context; empty if there is none, or no kubeconfig that can be read.
func Current(options *clientcmd.PathOptions) string {
	config, err := options.GetStartingConfig()
	if err != nil {
		return ""
	}
	return config.CurrentContext
}
