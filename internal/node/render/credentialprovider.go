// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"time"
)

// CredentialProvider is the program that the kubelet asks for passwords of ECR's registries, by the name that it has on
// EKS.
const CredentialProvider = "ecr-credential-provider" //nolint:gosec // G101: the name of a program

// PathCredentialProviders is the directory of such programs, as on EKS.
const PathCredentialProviders = "/etc/eks/image-credential-provider" //nolint:gosec // G101: a path

const pathCredentialProviderConfig = PathCredentialProviders + "/config.json"

// credentialProviderConfig is the kubelet's configuration of credential providers (kubelet.config.k8s.io/v1,
// CredentialProviderConfig), with EKS's pattern of images for the region alone: there is no registry of the account in
// others.
type credentialProviderConfig struct {
	Kind       string               `json:"kind"`
	APIVersion string               `json:"apiVersion"`
	Providers  []credentialProvider `json:"providers"`
}

type credentialProvider struct {
	Name                 string     `json:"name"`
	MatchImages          []string   `json:"matchImages"`
	DefaultCacheDuration string     `json:"defaultCacheDuration"`
	APIVersion           string     `json:"apiVersion"`
	Env                  []variable `json:"env"`
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// credentialProviderFiles are for machines of the local provider, where the program is. A host that joins has what its
// owner gives it.
func credentialProviderFiles(instance Instance, layout Layout) ([]File, error) {
	if layout.Systemd {
		return nil, nil
	}
	content, err := indented(credentialProviderConfig{
		Kind: "CredentialProviderConfig", APIVersion: "kubelet.config.k8s.io/v1",
		Providers: []credentialProvider{{
			Name: CredentialProvider, MatchImages: []string{"*.dkr.ecr." + instance.Region + ".amazonaws.com"}, DefaultCacheDuration: (12 * time.Hour).String(),
			APIVersion: "credentialprovider.kubelet.k8s.io/v1", Env: []variable{{"AWS_CONFIG_FILE", "/etc/aws/config"}}, // which names the account's authority
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("writing configuration of credential providers: %w", err)
	}
	return []File{{Path: pathCredentialProviderConfig, Mode: 0o644, Content: content}}, nil
}

// credentialProviderArgs are the kubelet's arguments for them.
func credentialProviderArgs(layout Layout) []string {
	if layout.Systemd {
		return nil
	}
	return []string{"--image-credential-provider-bin-dir=" + PathCredentialProviders, "--image-credential-provider-config=" + pathCredentialProviderConfig}
}
