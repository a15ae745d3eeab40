// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/node/render"
)

// ByRole reports whether the node of a kubeconfig joined by its machine's role: it has no client certificate then, and
// needs none.
func ByRole(kubeconfig string) bool {
	raw, err := os.ReadFile(kubeconfig)
	return err == nil && render.JoinsByRole(raw)
}

// ReadNode reports on the certificates that a node has: one that joined by its machine's role has the one that it
// serves alone.
func ReadNode(kubeconfig, dir string, now time.Time) []Report {
	if ByRole(kubeconfig) {
		return []Report{read(dir, Serving, now)}
	}
	return Read(dir, now)
}

// roleConnection is what the kubelet uses: the kubeconfig names the program that makes tokens of the machine's role.
// Which node that is stands nowhere on the disk, so the API server is asked.
func roleConnection(ctx context.Context, kubeconfig string) (config *rest.Config, node string, err error) {
	file, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubelet's kubeconfig: %w", err)
	}
	if config, err = configOf(kubeconfig, file); err != nil {
		return nil, "", err
	}
	return nodeOf(ctx, config)
}

// TokenConnection is the same with a token of the machine's role that was made here: process number one may start no
// program.
func TokenConnection(ctx context.Context, kubeconfig, token string) (config *rest.Config, node string, err error) {
	if config, err = Endpoint(kubeconfig); err != nil {
		return nil, "", err
	}
	config.BearerToken = token
	return nodeOf(ctx, config)
}

// nodeOf asks the API server for the node of a connection's credential.
func nodeOf(ctx context.Context, config *rest.Config) (_ *rest.Config, node string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, "", fmt.Errorf("using the machine's role: %w", err)
	}
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, "", fmt.Errorf("asking %s whom it takes the machine's role for: %w", config.Host, err)
	}
	node, ok := strings.CutPrefix(who.Status.UserInfo.Username, userPrefix)
	if !ok || node == "" {
		return nil, "", fmt.Errorf("the machine's role authenticates as %q, which is not a node", who.Status.UserInfo.Username)
	}
	return config, node, nil
}
