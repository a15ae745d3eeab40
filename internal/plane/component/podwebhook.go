// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"path/filepath"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/iam/podwebhookconfig"
)

// podWebhookClient is the credential by which the API server asks the webhook. Its authority is that of the programs
// that speak for users: nobody gets a certificate of it by a CSR.
const podWebhookClient = "pod-identity-webhook-client"

// PodWebhookURL is where the API server asks about new pods.
func (c Config) PodWebhookURL() string { return c.Places.PodWebhook.URL() + "/mutate" }

// PodAssociationsURL is where the account tells which service accounts have a pod identity association.
func (c Config) PodAssociationsURL() string {
	return c.Places.PodWebhook.URL() + podwebhookconfig.AssociationsPath
}

// PodAssociations is the file in which the webhook keeps what it was told last.
func (c Config) PodAssociations() string {
	return filepath.Join(c.Dir.PodWebhook(), "associations.json")
}

// PodAssociationsBefore is the file in which the service told the webhook before it did so by TLS.
func (c Config) PodAssociationsBefore() string { return c.file(PodWebhook, "associations.json") }

// podWebhook gives pods the identities of their service accounts. The API server starts before it, and lets pods in
// while it is away.
func podWebhook(c Config) (Spec, error) {
	path := c.file(PodWebhook, "kubeconfig")
	credential := c.Credential(PodWebhook)
	cluster, err := kubeconfig(path, c.Places.Published.URL(), c.Authority(authority.Cluster), credential)
	if err != nil {
		return Spec{}, err
	}
	trust := c.Account.Authority(authority.Account)
	raw, err := yaml.Marshal(podwebhookconfig.Configuration{
		TypeMeta: metav1.TypeMeta{APIVersion: podwebhookconfig.APIVersion, Kind: podwebhookconfig.Kind},
		Server: podwebhookconfig.Server{
			BindAddress: c.Places.PodWebhook.Listen.String(), Certificate: credential, Key: credential, Health: c.Places.PodWebhookHealth.Listen.String(),
			ClientCA: c.Authority(authority.FrontProxy),
			Metrics:  c.Places.PodWebhookMetrics.Listen.String(), MetricsClientCA: c.Authority(authority.Cluster),
		},
		Region:               c.Region.Name,
		WebIdentity:          podwebhookconfig.WebIdentity{RegionalEndpoints: true},
		ConfigMapNamespace:   metav1.NamespaceSystem,
		ContainerCredentials: podwebhookconfig.ContainerCredentials{File: c.PodAssociations(), Writer: UserAccount},
		// AWS's services have their own names in the VPC, and certificates by the account's authority.
		Account: podwebhookconfig.Account{TrustFile: trust},
	})
	if err != nil {
		return Spec{}, fmt.Errorf("rendering the pod identity webhook's file: %w", err)
	}
	file := File{Path: c.file(PodWebhook, "webhook.yaml"), Mode: modePrivate, Content: string(raw)}
	return Spec{
		Name:        PodWebhook,
		Path:        c.program("muster"),
		Args:        append([]string{"pod-identity-webhook"}, flags(map[string]string{"config": file.Path, "kubeconfig": path})...),
		Files:       []File{cluster, file},
		Directories: []string{c.Dir.PodWebhook()},
		Address:     c.Places.PodWebhook.Listen.String(),
		Credentials: sorted(credential, trust),
		View: &View{
			Reads:  []string{credential},
			Public: sorted(c.Authority(authority.Cluster), c.Authority(authority.FrontProxy)), Fixed: []string{trust},
			Writes: []string{c.Dir.PodWebhook()},
		},
		Probe: &Probe{URL: "http://" + c.Places.PodWebhookHealth.Reach.String() + "/readyz"},
		After: []string{Front, APIServer},
	}, nil
}

// admission is the API server's configuration of webhooks: what it shows the pod identity webhook to be known as the
// API server. It shows a client certificate to no webhook by itself.
func admission(c Config, name string) ([]File, error) {
	config, users := c.file(name, "admission.yaml"), c.file(name, "admission.kubeconfig")
	credential := c.Credential(podWebhookClient)
	known := clientcmdapi.NewConfig()
	known.AuthInfos[c.Places.PodWebhook.Reach.String()] = &clientcmdapi.AuthInfo{ClientCertificate: credential, ClientKey: credential}
	raw, err := clientcmd.Write(*known)
	if err != nil {
		return nil, fmt.Errorf("rendering the API server's credentials for webhooks: %w", err)
	}
	return []File{
		{Path: config, Mode: modePrivate, Content: `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: ` + strconv.Quote(users) + `
`},
		{Path: users, Mode: modePrivate, Content: string(raw)},
	}, nil
}
