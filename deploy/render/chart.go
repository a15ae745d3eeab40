// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

const (
	chartDir  = "charts/muster-certificate-controller"
	release   = "muster-certificate-controller"
	namespace = "muster-system"
)

// chartFiles are the files of the chart that have their home elsewhere, by their path below deploy/.
func chartFiles(deploy string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for to, from := range map[string]string{
		"alerts.yaml":    "alerts/certificate-controller.yaml",
		"dashboard.json": "dashboards/certificate-controller.json",
	} {
		content, err := os.ReadFile(filepath.Join(deploy, from))
		if err != nil {
			return nil, fmt.Errorf("reading what goes into the chart: %w", err)
		}
		files[filepath.Join(chartDir, "files", to)] = content
	}
	more, err := authenticatorFiles(deploy)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, more)
	return files, nil
}

func loadChart(deploy string) (*chart.Chart, error) { return loadChartIn(deploy, chartDir) }

func loadChartIn(deploy, dir string) (*chart.Chart, error) {
	c, err := loader.LoadDir(filepath.Join(deploy, dir))
	if err != nil {
		return nil, fmt.Errorf("loading the chart: %w", err)
	}
	return c, nil
}

// render does what `helm template` does, the values' schema included, and returns the objects in the order in which
// Helm installs them.
func render(c *chart.Chart, values map[string]any) ([]releaseutil.Manifest, error) {
	return renderAs(c, values, release)
}

func renderAs(c *chart.Chart, values map[string]any, name string) ([]releaseutil.Manifest, error) {
	return renderFor(c, values, name, manifestsFor)
}

// manifestsFor is the version of Kubernetes that plain manifests are for. Helm's own default depends on how the program
// was built.
const manifestsFor = "v1.30.0"

// namespaceOf is the namespace of a release.
func namespaceOf(release string) string {
	if release == webhookRelease {
		return webhookNamespace
	}
	return namespace
}

// renderFor renders for clusters of a version of Kubernetes.
func renderFor(c *chart.Chart, values map[string]any, name, kubernetes string) ([]releaseutil.Manifest, error) {
	version, err := common.ParseKubeVersion(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	all, err := util.ToRenderValues(c, values, common.ReleaseOptions{
		Name: name, Namespace: namespaceOf(name), Revision: 1, IsInstall: true,
	}, capabilities)
	if err != nil {
		return nil, fmt.Errorf("reading the values: %w", err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart: %w", err)
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	_, objects, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, fmt.Errorf("sorting the objects: %w", err)
	}
	return objects, nil
}
