// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
)

const (
	authenticatorChart    = "charts/muster-authenticator"
	authenticatorRelease  = "muster-authenticator"
	authenticatorProfiles = "profiles/authenticator"
)

// authenticatorCRDs are the kinds that it reads: the name in the chart by the path in the source tree.
func authenticatorCRDs() map[string]string {
	return map[string]string{
		"api/access/v1alpha1/crds/access.muster.dev_accessentries.yaml":                        "accessentries.yaml",
		"api/iamauthenticator/v1alpha1/crds/iamauthenticator.k8s.aws_iamidentitymappings.yaml": "iamidentitymappings.yaml",
	}
}

// authenticatorFiles are the files of its chart that have their home elsewhere, by their path below deploy/. The alerts
// and the dashboard have it in deploy/, the kinds in the source tree around it.
func authenticatorFiles(deploy string) (map[string][]byte, error) {
	files := map[string][]byte{}
	from := map[string]string{
		filepath.Join("files", "alerts.yaml"):    filepath.Join(deploy, "alerts", "authenticator.yaml"),
		filepath.Join("files", "dashboard.json"): filepath.Join(deploy, "dashboards", "authenticator.json"),
	}
	for path, name := range authenticatorCRDs() {
		from[filepath.Join("crds", name)] = filepath.Join(deploy, "..", path)
	}
	for to, path := range from {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading what goes into the authenticator's chart: %w", err)
		}
		files[filepath.Join(authenticatorChart, to)] = content
	}
	return files, nil
}

// authenticator renders the authenticator's chart with each of its profiles, and adds what comes of it to files:
// existing.yaml gives manifests/authenticator.yaml, NAME.yaml gives manifests/authenticator-NAME.yaml.
func authenticator(deploy string, files map[string][]byte) error {
	c, err := loadChartIn(deploy, authenticatorChart)
	if err != nil {
		return err
	}
	copies, err := authenticatorFiles(deploy)
	if err != nil {
		return err
	}
	profiles, err := filepath.Glob(filepath.Join(deploy, authenticatorProfiles, "*.yaml"))
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
		objects, err := renderAs(c, values, authenticatorRelease)
		if err != nil {
			return fmt.Errorf("profile %s: %w", path, err)
		}
		name := filepath.Base(path)
		var b bytes.Buffer
		fmt.Fprintf(&b, "# SPDX-License-Identifier: Apache-2.0\n#\n%s#\n# Rendered by `make manifests` from deploy/%s with deploy/%s/%s: change those.\n",
			about(raw), authenticatorChart, authenticatorProfiles, name)
		b.WriteString(namespaceObject(namespace, map[string]any{"hostNetwork": true}))
		for _, from := range slices.Sorted(maps.Keys(authenticatorCRDs())) {
			content := copies[filepath.Join(authenticatorChart, "crds", authenticatorCRDs()[from])]
			fmt.Fprintf(&b, "---\n%s\n", strings.TrimPrefix(strings.TrimSpace(string(content)), "---\n"))
		}
		for _, o := range objects {
			fmt.Fprintf(&b, "---\n%s\n", strings.TrimSpace(o.Content))
		}
		to := "authenticator.yaml"
		if name != "existing.yaml" {
			to = "authenticator-" + name
		}
		files[filepath.Join("manifests", to)] = b.Bytes()
	}
	return nil
}
