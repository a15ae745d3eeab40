// SPDX-License-Identifier: Apache-2.0

package policyconfig

import (
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/token"
)

// The bounds of certificates' lives.
const (
	minLife = 10 * time.Minute
	maxLife = 10 * 365 * 24 * time.Hour
)

// check gathers what is wrong.
type check struct{ errs field.ErrorList }

func (k *check) add(e *field.Error) { k.errs = append(k.errs, e) }

func (k *check) oneOf(path *field.Path, value string, choices ...string) {
	if !slices.Contains(choices, value) {
		k.add(field.NotSupported(path, value, choices))
	}
}

func (k *check) within(path *field.Path, d Duration, least, most time.Duration) {
	parsed, err := time.ParseDuration(string(d))
	switch {
	case err != nil:
		k.add(field.Invalid(path, string(d), "must be a duration such as 168h or 90m"))
	case parsed < least || parsed > most:
		k.add(field.Invalid(path, string(d), fmt.Sprintf("must be from %s to %s", least, most)))
	}
}

func (k *check) required(path *field.Path, value, what string) {
	if value == "" {
		k.add(field.Required(path, what))
	}
}

// file wants an absolute path: a service's working directory must not be depended on.
func (k *check) file(path *field.Path, value, what string) {
	switch {
	case value == "":
		k.add(field.Required(path, what))
	case !filepath.IsAbs(value):
		k.add(field.Invalid(path, value, "must be an absolute path"))
	}
}

func (k *check) optionalFile(path *field.Path, value string) {
	if value != "" {
		k.file(path, value, "")
	}
}

func (k *check) label(path *field.Path, value string) {
	for _, problem := range validation.IsDNS1123Label(value) {
		k.add(field.Invalid(path, value, problem))
	}
}

func (k *check) address(path *field.Path, value string) {
	if value == "" {
		return
	}
	if _, err := netip.ParseAddrPort(value); err != nil {
		k.add(field.Invalid(path, value, "must be an IP address and a port, such as 127.0.0.1:9443"))
	}
}

// validate returns everything that is wrong, in the order of the file.
func (c Configuration) validate() field.ErrorList {
	k := &check{}
	if c.APIVersion != APIVersion {
		k.oneOf(field.NewPath("apiVersion"), c.APIVersion, APIVersion)
	}
	if c.Kind != Kind {
		k.oneOf(field.NewPath("kind"), c.Kind, Kind)
	}
	k.oneOf(field.NewPath("mode"), c.Mode, ModeApproveAndSign, ModeApproveOnly, ModeSignOnly, ModeObserve)
	if c.Workers < 0 || c.Workers > 1024 {
		k.add(field.Invalid(field.NewPath("workers"), c.Workers, "must be from 1 to 1024, or 0 to follow latency"))
	}
	k.within(field.NewPath("shutdownGrace"), c.ShutdownGrace, time.Millisecond, 10*time.Minute)
	c.validateSigners(k)
	c.validateKeys(k)
	c.validateTrust(k)
	c.Rules.validate(k, field.NewPath("policy"))
	c.validateInventory(k)
	k.label(field.NewPath("register", "namespace"), c.Register.Namespace)
	if c.Pruning.Keep < -1 {
		k.add(field.Invalid(field.NewPath("pruning", "keep"), c.Pruning.Keep, "must be 1 or more, or -1 to keep all"))
	}
	k.label(field.NewPath("leaderElection", "namespace"), c.LeaderElection.Namespace)
	for _, problem := range validation.IsDNS1123Subdomain(c.LeaderElection.Name) {
		k.add(field.Invalid(field.NewPath("leaderElection", "name"), c.LeaderElection.Name, problem))
	}
	c.Health.validate(k, field.NewPath("health"))
	c.Metrics.validate(k, field.NewPath("metrics"))
	if c.Health.Certificate != "" || c.Health.ClientCA != "" {
		k.add(field.Forbidden(field.NewPath("health", "certificate"), "health is served without TLS"))
	}
	if c.Metrics.BindAddress != "" && c.Metrics.BindAddress == c.Health.BindAddress && !strings.HasSuffix(c.Metrics.BindAddress, ":0") {
		k.add(field.Invalid(field.NewPath("metrics", "bindAddress"), c.Metrics.BindAddress, "must be another port than health's: metrics are served with TLS, to those alone who may get them"))
	}
	c.validateAuthorization(k, field.NewPath("authorization"))
	return k.errs
}

// validateAuthorization wants callers with a certificate, and a source that knows each machine that there is: another
// may forget one that goes on.
func (c Configuration) validateAuthorization(k *check, path *field.Path) {
	e := c.Authorization
	e.validate(k, path)
	if e == (Endpoint{}) {
		return
	}
	k.required(path.Child("bindAddress"), e.BindAddress, "the address that the API server asks at, such as 127.0.0.1:9444")
	k.required(path.Child("certificate"), e.Certificate, "API servers verify whom they ask")
	k.required(path.Child("clientCA"), e.ClientCA, "the authority of the client certificate that the API server shows")
	for _, other := range []Endpoint{c.Health, c.Metrics} {
		if e.BindAddress != "" && e.BindAddress == other.BindAddress && !strings.HasSuffix(e.BindAddress, ":0") {
			k.add(field.Invalid(path.Child("bindAddress"), e.BindAddress, "must be another port than those of health and metrics"))
		}
	}
	if !slices.ContainsFunc(c.Inventory.Sources, func(s Source) bool { return s.Machines != nil }) {
		k.add(field.Invalid(path, "authorization", "needs inventory.sources with machines: other sources do not know each machine that there is"))
	}
}

func (e Endpoint) validate(k *check, path *field.Path) {
	k.address(path.Child("bindAddress"), e.BindAddress)
	k.optionalFile(path.Child("certificate"), e.Certificate)
	k.optionalFile(path.Child("key"), e.Key)
	k.optionalFile(path.Child("clientCA"), e.ClientCA)
	if e.ClientCA != "" && e.Certificate == "" {
		k.add(field.Required(path.Child("certificate"), "clients show a certificate only to a server that they can verify: give certificate and key besides clientCA"))
	}
	if (e.Certificate == "") != (e.Key == "") {
		k.add(field.Required(path, "give both certificate and key, or neither"))
	}
}

func (c Configuration) signs() bool { return c.Mode == ModeApproveAndSign || c.Mode == ModeSignOnly }

func (c Configuration) validateSigners(k *check) {
	list := field.NewPath("signers")
	if len(c.Signers) == 0 {
		k.add(field.Required(list, "name the signers that are served, such as "+pki.SignerKubeletServing))
	}
	seen := map[string]bool{}
	for i, s := range c.Signers {
		path := list.Index(i)
		if seen[s.Name] {
			k.add(field.Duplicate(path.Child("name"), s.Name))
		}
		seen[s.Name] = true
		if _, err := s.PKIProfile(); err != nil {
			k.add(field.Invalid(path, s.Name, err.Error()))
		}
		k.within(path.Child("duration"), s.Duration, minLife, maxLife)
		known := slices.ContainsFunc(c.Keys, func(key Key) bool { return key.Name == s.Key })
		switch {
		case s.Key != "" && !known:
			k.add(field.NotFound(path.Child("key"), s.Key))
		case s.Key == "" && c.signs():
			k.add(field.Required(path.Child("key"), "in mode "+c.Mode+" each signer needs a key; with several under keys say which"))
		}
	}
}

func (c Configuration) validateKeys(k *check) {
	list := field.NewPath("keys")
	seen := map[string]bool{}
	for i, key := range c.Keys {
		path := list.Index(i)
		k.label(path.Child("name"), key.Name)
		if seen[key.Name] {
			k.add(field.Duplicate(path.Child("name"), key.Name))
		}
		seen[key.Name] = true
		switch {
		case (key.File == nil) == (key.PKCS11 == nil):
			k.add(field.Required(path, "say where the key is: file or pkcs11, one of them"))
		case key.File != nil:
			k.file(path.Child("file", "certificate"), key.File.Certificate, "the PEM file of the signing certificate")
			k.file(path.Child("file", "key"), key.File.Key, "the PEM file of its private key; may be the same file")
		default:
			p := path.Child("pkcs11")
			k.file(p.Child("certificate"), key.PKCS11.Certificate, "the PEM file of the signing certificate")
			k.file(p.Child("module"), key.PKCS11.Module, "the library of the token's vendor")
			k.file(p.Child("pinFile"), key.PKCS11.PINFile, "the file with the PIN, readable by its owner only")
			k.required(p.Child("token"), key.PKCS11.Token, "the label of the token")
			if key.PKCS11.KeyLabel == "" && key.PKCS11.KeyID == "" {
				k.add(field.Required(p.Child("keyLabel"), "say which key: keyLabel, keyID or both"))
			}
			if key.PKCS11.Sessions < 0 || key.PKCS11.Sessions > 1024 {
				k.add(field.Invalid(p.Child("sessions"), key.PKCS11.Sessions, "must be from 1 to 1024"))
			}
		}
	}
}

func (c Configuration) validateTrust(k *check) {
	if c.Trust == nil {
		return
	}
	path := field.NewPath("trust")
	switch {
	case c.Mode == ModeObserve:
		k.add(field.Forbidden(path, "in mode observe nothing is written, so nothing can be published"))
	case !c.signs() && len(c.Trust.Client)+len(c.Trust.Serving) == 0:
		k.add(field.Required(path, "in mode "+c.Mode+" no key is known here: name the files of the authorities that sign"))
	}
	for i, f := range c.Trust.Client {
		k.file(path.Child("client").Index(i), f, "a PEM file with authorities that are still trusted")
	}
	for i, f := range c.Trust.Serving {
		k.file(path.Child("serving").Index(i), f, "a PEM file with authorities that are still trusted")
	}
	if c.Trust.Publish == nil {
		k.add(field.Required(path.Child("publish"), "say in which namespace the bundles are published"))
		return
	}
	k.label(path.Child("publish", "namespace"), c.Trust.Publish.Namespace)
}

func (r Rules) validate(k *check, path *field.Path) {
	before := len(k.errs)
	k.within(path.Child("minExpiration"), r.MinExpiration, minLife, maxLife)
	k.within(path.Child("maxExpiration"), r.MaxExpiration, minLife, maxLife)
	if len(k.errs) == before && r.MinExpiration.value() > r.MaxExpiration.value() {
		k.add(field.Invalid(path.Child("minExpiration"), string(r.MinExpiration), "must not be more than maxExpiration"))
	}
	k.within(path.Child("maxFactAge"), r.MaxFactAge, time.Second, 24*time.Hour)
	reserved := path.Child("reserved")
	for _, problem := range validation.IsDNS1123Subdomain(r.Reserved.ClusterDomain) {
		k.add(field.Invalid(reserved.Child("clusterDomain"), r.Reserved.ClusterDomain, problem))
	}
	for i, name := range r.Reserved.Names {
		k.required(reserved.Child("names").Index(i), canonical(name), "a DNS name")
	}
	for i, text := range r.Reserved.Addresses {
		if _, err := network(text); err != nil {
			k.add(field.Invalid(reserved.Child("addresses").Index(i), text, "must be a network such as 10.96.0.0/12, or an address"))
		}
	}
	if s := r.ServingRenewal; s != nil {
		at := path.Child("servingRenewal")
		if len(s.Authorities) == 0 {
			k.add(field.Required(at.Child("authorities"), "the files of the authorities that sign kubelets' serving certificates"))
		}
		for i, file := range s.Authorities {
			k.file(at.Child("authorities").Index(i), file, "a file in PEM")
		}
		if s.Port < 0 || s.Port > 65535 {
			k.add(field.Invalid(at.Child("port"), s.Port, "must be a port, from 1 to 65535"))
		}
	}
	for i, reason := range r.ApprovalReasons {
		at := path.Child("approvalReasons").Index(i)
		k.required(at, strings.TrimSpace(reason), "the reason of approvals that stand for a person's")
		if reason == policy.ReasonAutoApproved {
			k.add(field.Invalid(at, reason, "must not be that of upstream's approver, and of this one"))
		}
	}
	bootstrap := path.Child("bootstrap")
	k.oneOf(bootstrap.Child("unboundTokens"), r.Bootstrap.UnboundTokens, UnboundRefuse, UnboundAllow)
	if r.Bootstrap.Window != "" {
		k.within(bootstrap.Child("window"), r.Bootstrap.Window, time.Minute, maxLife)
	}
	for i, b := range r.Bootstrap.Bindings {
		at := bootstrap.Child("bindings").Index(i)
		b.validateWho(k, at)
		if len(b.NodeNames)+len(b.MachineGroups) == 0 {
			k.add(field.Required(at, "say what the tokens are good for: nodeNames, machineGroups or both"))
		}
		for j, pattern := range b.NodeNames {
			if err := token.CheckPattern(pattern); err != nil {
				k.add(field.Invalid(at.Child("nodeNames").Index(j), pattern, err.Error()))
			}
		}
		for j, group := range b.MachineGroups {
			k.required(at.Child("machineGroups").Index(j), group, "the name of a group")
		}
	}
}

func (b Binding) validateWho(k *check, at *field.Path) {
	switch {
	case (b.Group == "") == (b.User == ""):
		k.add(field.Required(at, "name the group of the tokens, such as system:bootstrappers:kubeadm:default-node-token, or a user; one of them"))
	case b.User != "" && strings.HasPrefix(b.User, "system:") && !strings.HasPrefix(b.User, "system:serviceaccount:"):
		k.add(field.Invalid(at.Child("user"), b.User, "must not be a user of Kubernetes' own, except a service account"))
	}
}

func (c Configuration) validateInventory(k *check) {
	path := field.NewPath("inventory")
	k.oneOf(path.Child("combine"), c.Inventory.Combine, CombineAny, CombineAll)
	for i, s := range c.Inventory.Sources {
		s.validate(k, path.Child("sources").Index(i))
	}
	tells := func(s Source) bool {
		return s.Machines != nil || s.ClusterAPI != nil || s.EC2 != nil || s.Static != nil
	}
	if c.Rules.Bootstrap.Window != "" && len(c.Inventory.Sources) > 0 && !slices.ContainsFunc(c.Inventory.Sources, tells) {
		k.add(field.Forbidden(field.NewPath("policy", "bootstrap", "window"), "no source of the inventory knows when machines were made: static, machines, clusterAPI and ec2 do"))
	}
	nodes := slices.ContainsFunc(c.Signers, func(s Signer) bool {
		p, err := s.PKIProfile()
		// The certificates that kubelets serve with can do without machines if they vouch for one another.
		return err == nil && p.Node && (c.Rules.ServingRenewal == nil || s.Name != pki.SignerKubeletServing)
	})
	if nodes && len(c.Inventory.Sources) == 0 {
		k.add(field.Required(path.Child("sources"), "name where machines are known from: static, machines, dns, clusterAPI or ec2; without one no node gets a certificate"))
	}
}

func (s Source) validate(k *check, path *field.Path) {
	set := 0
	for _, is := range []bool{s.Machines != nil, s.Static != nil, s.DNS != nil, s.ClusterAPI != nil, s.EC2 != nil, s.NodeStatus != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		k.add(field.Required(path, "name one of machines, static, dns, clusterAPI, ec2 and nodeStatus"))
		return
	}
	switch {
	case s.Machines != nil:
		k.file(path.Child("machines", "kubeconfig"), s.Machines.Kubeconfig, "the kubeconfig of Muster's management plane")
	case s.Static != nil:
		at := path.Child("static")
		switch {
		case (s.Static.File == "") == (s.Static.ConfigMap == nil):
			k.add(field.Required(at, "name a file or a configMap, one of them"))
		case s.Static.File != "":
			k.file(at.Child("file"), s.Static.File, "")
		default:
			k.label(at.Child("configMap", "namespace"), s.Static.ConfigMap.Namespace)
			k.required(at.Child("configMap", "name"), s.Static.ConfigMap.Name, "the name of the ConfigMap")
		}
	case s.DNS != nil:
		at := path.Child("dns")
		for i, r := range s.DNS.Resolvers {
			if _, err := netip.ParseAddrPort(r); err != nil {
				k.add(field.Invalid(at.Child("resolvers").Index(i), r, "must be an address and a port, such as 10.0.0.2:53"))
			}
		}
		for _, problem := range validation.IsDNS1123Subdomain(s.DNS.Domain) {
			if s.DNS.Domain != "" {
				k.add(field.Invalid(at.Child("domain"), s.DNS.Domain, problem))
			}
		}
		k.within(at.Child("timeout"), s.DNS.Timeout, 10*time.Millisecond, time.Minute)
	case s.ClusterAPI != nil:
		k.optionalFile(path.Child("clusterAPI", "kubeconfig"), s.ClusterAPI.Kubeconfig)
	case s.EC2 != nil:
		at := path.Child("ec2")
		k.oneOf(at.Child("nodeNames"), s.EC2.NodeNames, NodeNamesPrivateDNS, NodeNamesInstanceID, NodeNamesResource)
		if u, err := url.Parse(s.EC2.Endpoint); s.EC2.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
			k.add(field.Invalid(at.Child("endpoint"), s.EC2.Endpoint, "must be a URL such as https://ec2.eu-west-1.amazonaws.com"))
		}
	}
}
