// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"maps"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/certificates/token"
)

var caCertHash = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (j Join) validate(at *field.Path) field.ErrorList {
	problems := j.validateRole(at)
	if j.Token != "" {
		if _, err := token.Parse(j.Token); err != nil {
			problems = append(problems, field.Invalid(at.Child("token"), hidden, err.Error()))
		}
		if j.TokenFile != "" {
			problems = append(problems, field.Forbidden(at.Child("tokenFile"), "there is a token already; keep one of the two"))
		}
	}
	if j.TokenFile != "" && !absolute(j.TokenFile) {
		problems = append(problems, field.Invalid(at.Child("tokenFile"), j.TokenFile, "must be an absolute path"))
	}
	for i, hash := range j.CACertHashes {
		if !caCertHash.MatchString(hash) {
			problems = append(problems, field.Invalid(at.Child("caCertHashes").Index(i), hash, "must be sha256: and 64 hexadecimal digits in lower case"))
		}
	}
	if j.DiscoveryFile != "" && !absolute(j.DiscoveryFile) {
		address, err := url.Parse(j.DiscoveryFile)
		if err != nil || address.Scheme != "https" || address.Hostname() == "" || address.User != nil {
			problems = append(problems, field.Invalid(at.Child("discoveryFile"), WithoutSecrets(j.DiscoveryFile), "must be an absolute path or an https URL"))
		}
	}
	if j.NodeName != "" {
		for _, message := range validation.IsDNS1123Subdomain(j.NodeName) {
			problems = append(problems, field.Invalid(at.Child("nodeName"), j.NodeName, message))
		}
	}
	return problems
}

// validateRole refuses two ways to join at once: which of them the machine took would be a matter of chance.
func (j Join) validateRole(at *field.Path) field.ErrorList {
	if !j.InstanceRole {
		return nil
	}
	var problems field.ErrorList
	for _, other := range []struct {
		name  string
		given bool
	}{{"token", j.Token != ""}, {"tokenFile", j.TokenFile != ""}, {"discoveryFile", j.DiscoveryFile != ""}} {
		if other.given {
			problems = append(problems, field.Forbidden(at.Child(other.name), "the machine joins by its role (instanceRole); keep one of the two"))
		}
	}
	return problems
}

func absolute(name string) bool { return path.IsAbs(name) && !strings.ContainsRune(name, 0) }

var (
	serviceName  = regexp.MustCompile(`^[A-Za-z0-9:_.@-]+$`) // of a unit of systemd, without its suffix
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (i Instance) validate(at *field.Path) field.ErrorList {
	problems := i.LocalStorage.validate(at.Child("localStorage"))
	if policy := i.UserDataFailurePolicy; policy != "" && policy != Fail && policy != Ignore {
		problems = append(problems, field.NotSupported(at.Child("userDataFailurePolicy"), policy, []string{Fail, Ignore}))
	}
	environment := at.Child("environment")
	for _, service := range slices.Sorted(maps.Keys(i.Environment)) {
		if !serviceName.MatchString(service) || strings.Trim(service, ".") == "" {
			problems = append(problems, field.Invalid(environment.Key(service), service, "must be the name of a service, or default for all"))
		}
		for _, name := range slices.Sorted(maps.Keys(i.Environment[service])) {
			if !variableName.MatchString(name) {
				problems = append(problems, field.Invalid(environment.Key(service).Key(name), name, "must be the name of a variable: letters, digits and _"))
			}
			if strings.ContainsAny(i.Environment[service][name], "\r\n\x00") {
				problems = append(problems, field.Invalid(environment.Key(service).Key(name), hidden, "must be one line"))
			}
		}
	}
	for n, server := range i.Network.Nameservers {
		if _, err := netip.ParseAddr(server); err != nil {
			problems = append(problems, field.Invalid(at.Child("network", "nameservers").Index(n), server, "must be an IP address"))
		}
	}
	for n, domain := range i.Network.Domains {
		for _, message := range validation.IsDNS1123Subdomain(strings.TrimSuffix(domain, ".")) {
			problems = append(problems, field.Invalid(at.Child("network", "domains").Index(n), domain, message))
		}
	}
	return problems
}

func (l LocalStorage) validate(at *field.Path) field.ErrorList {
	var problems field.ErrorList
	strategies := []string{"Mount", "RAID0", "RAID10"}
	if l.Strategy != "" && !slices.Contains(strategies, l.Strategy) {
		problems = append(problems, field.NotSupported(at.Child("strategy"), l.Strategy, strategies))
	}
	if l.MountPath != "" && !absolute(l.MountPath) {
		problems = append(problems, field.Invalid(at.Child("mountPath"), l.MountPath, "must be an absolute path"))
	}
	mounts := []string{"Containerd", "PodLogs", "SOCI"}
	for n, mount := range l.DisabledMounts {
		if !slices.Contains(mounts, mount) {
			problems = append(problems, field.NotSupported(at.Child("disabledMounts").Index(n), mount, mounts))
		}
	}
	return problems
}

func validateGates(at *field.Path, gates map[string]bool) field.ErrorList {
	var problems field.ErrorList
	for _, gate := range slices.Sorted(maps.Keys(gates)) {
		if gate != GateFastImagePull && gate != GateInstanceIDNodeName {
			problems = append(problems, field.NotSupported(at, gate, []string{GateFastImagePull, GateInstanceIDNodeName}))
		}
	}
	return problems
}
