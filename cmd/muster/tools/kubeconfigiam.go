// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/iam/ekstoken"
	"muster.dev/muster/internal/platform/statedir"
)

// iamKubeconfig adds or prints a context that gets its tokens from `muster token get`.
func iamKubeconfig(o *terminal.Options, dir statedir.Dir, file, role string, show bool) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding muster's own program: %w", err)
	}
	chosen, err := o.OpenCluster()
	if err != nil {
		return err
	}
	cluster, err := clientcmd.LoadFromFile(chosen.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	config, err := withIAM(cluster, self, dir, role)
	if err != nil {
		return err
	}
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("writing kubeconfig: %w", err)
	}
	if show {
		_, err = o.Out.Write(raw)
		return err
	}
	temporary, err := os.MkdirTemp("", "muster-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	path := filepath.Join(temporary, "kubeconfig")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return err
	}
	return mergeContexts(o, dir, file, []string{path}, true)
}

// withIAM is the cluster of a kubeconfig with a user who logs in by IAM. The context is called CLUSTER-iam, beside the
// administrator's.
func withIAM(from *clientcmdapi.Config, program string, dir statedir.Dir, role string) (*clientcmdapi.Config, error) {
	context := from.Contexts[from.CurrentContext]
	if context == nil || from.Clusters[context.Cluster] == nil {
		return nil, fmt.Errorf("the cluster's kubeconfig has no context %q", from.CurrentContext)
	}
	args := []string{"token", "get", "--state-dir", string(dir), "--cluster", from.CurrentContext}
	if role != "" { // assuming it takes a request, which need not be made for each command
		args = append(args, "--role-arn", role, "--cache")
	}
	name := from.CurrentContext + "-iam"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = from.Clusters[context.Cluster]
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: ekstoken.V1, Command: program, Args: args, InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
		InstallHint: "muster made this context and is not at " + program + " any more: run muster kubeconfig --iam again",
	}}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config, nil
}
