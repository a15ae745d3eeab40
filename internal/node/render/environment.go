// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/platform/shellquote"
)

// everybody's environment goes by this name.
const everybody = "default"

// services are the programs that make a machine a node.
func services() []string { return []string{"containerd", "kube-proxy", "kubelet"} }

// Environment is what a program is started with on top of what all are, sorted: that of all programs, and over it its
// own.
func Environment(spec nodeconfig.Spec, service string) []string {
	variables := map[string]string{}
	maps.Copy(variables, spec.Instance.Environment[everybody])
	maps.Copy(variables, spec.Instance.Environment[service])
	return assignments(variables)
}

func assignments(variables map[string]string) []string {
	all := make([]string, 0, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		all = append(all, name+"="+variables[name])
	}
	return all
}

// environmentFiles tell systemd the environment of services. A variable may well hold the password of a proxy, so it is
// not in the unit's own text, which every user of the host may read (systemctl show), but in a file that is root's
// alone.
//
// On EKS what is everybody's becomes the default of every service of the host (DefaultEnvironment); here it is given to
// those that muster runs, and the rest of the host is left alone.
func environmentFiles(spec nodeconfig.Spec, layout Layout) []File {
	all := map[string][]string{}
	for service, variables := range spec.Instance.Environment {
		if service != everybody {
			all[service] = assignments(variables)
		}
	}
	for _, service := range services() {
		if service != "containerd" || !layout.ExistingContainerd {
			all[service] = Environment(spec, service)
		}
	}
	var files []File
	for service, variables := range all {
		if len(variables) == 0 {
			continue
		}
		path := "/etc/muster/environment/" + service
		files = append(files,
			File{Path: path, Mode: 0o600, Content: environmentFile(variables)},
			File{Path: pathUnits + "/" + service + ".service.d/environment.conf", Mode: 0o644, Content: []byte("[Service]\nEnvironmentFile=" + path + "\n")},
		)
	}
	return files
}

// environmentFile writes variables as systemd reads them (systemd.exec(5), EnvironmentFile=).
func environmentFile(variables []string) []byte {
	var text strings.Builder
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&text, "%s=\"%s\"\n", name, shellquote.Escape(value))
	}
	return []byte(text.String())
}

// checkEnvironment asks for programs that there are. On a host any service may be given variables, as on EKS.
func checkEnvironment(path *field.Path, environment map[string]map[string]string, layout Layout) field.ErrorList {
	var problems field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		switch {
		case name == everybody:
		case !layout.Systemd && !slices.Contains(services(), name):
			problems = append(problems, field.NotSupported(path, name, append(services(), everybody)))
		case strings.HasSuffix(name, ".service"):
			problems = append(problems, field.Invalid(path, name, "must be the name of a service without .service"))
		}
	}
	return problems
}
