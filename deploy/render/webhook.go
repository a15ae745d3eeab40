// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
)

const (
	webhookChart    = "charts/muster-pod-identity-webhook"
	webhookRelease  = "muster-pod-identity-webhook"
	webhookProfiles = "profiles/pod-identity-webhook"
	// webhookNamespace is its own: anyone who can read its Secret can change every new pod.
	webhookNamespace = "muster-pod-identity"
)

// webhook renders the pod identity webhook's chart with each of its profiles, and adds what comes of it to files:
// own-certificate.yaml gives manifests/pod-identity-webhook.yaml, NAME.yaml gives
// manifests/pod-identity-webhook-NAME.yaml.
func webhook(deploy string, files map[string][]byte) error {
	c, err := loadChartIn(deploy, webhookChart)
	if err != nil {
		return err
	}
	profiles, err := filepath.Glob(filepath.Join(deploy, webhookProfiles, "*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range profiles {
		raw, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading a profile: %w", err)
		}
		values, err := common.ReadValues(raw)
		if err != nil {
			return fmt.Errorf("reading the profile %s: %w", path, err)
		}
		objects, err := renderAs(c, values, webhookRelease)
		if err != nil {
			return fmt.Errorf("profile %s: %w", path, err)
		}
		name := filepath.Base(path)
		var b bytes.Buffer
		fmt.Fprintf(&b, "# SPDX-License-Identifier: Apache-2.0\n#\n%s#\n# Rendered by `make manifests` from deploy/%s with deploy/%s/%s: change those.\n",
			about(raw), webhookChart, webhookProfiles, name)
		b.WriteString(namespaceObject(webhookNamespace, nil))
		for _, o := range objects {
			fmt.Fprintf(&b, "---\n%s\n", strings.TrimSpace(o.Content))
		}
		to := "pod-identity-webhook.yaml"
		if name != "own-certificate.yaml" {
			to = "pod-identity-webhook-" + name
		}
		files[filepath.Join("manifests", to)] = b.Bytes()
	}
	return nil
}
