// SPDX-License-Identifier: Apache-2.0

package authenticatorconfig

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/ststoken"
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
		k.add(field.Invalid(path, string(d), "must be a duration such as 10s or 2m"))
	case parsed < least || parsed > most:
		k.add(field.Invalid(path, string(d), fmt.Sprintf("must be from %s to %s", least, most)))
	}
}

func (k *check) between(path *field.Path, n, least, most int) {
	if n < least || n > most {
		k.add(field.Invalid(path, n, fmt.Sprintf("must be from %d to %d", least, most)))
	}
}

// file wants an absolute path: a service must not depend on its working directory.
func (k *check) file(path *field.Path, value string) {
	if value != "" && !filepath.IsAbs(value) {
		k.add(field.Invalid(path, value, "must be an absolute path"))
	}
}

func (k *check) url(path *field.Path, value string) {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		k.add(field.Invalid(path, value, "must be a URL such as https://sts.example:8443"))
	}
}

func (k *check) account(path *field.Path, value string) {
	if ok, _ := regexp.MatchString(`^[0-9]{12}$`, value); !ok {
		k.add(field.Invalid(path, value, "must be an account number of 12 digits, in quotes"))
	}
}

// validate returns everything that is wrong, in the order of the file.
func (c Configuration) validate() field.ErrorList {
	k := &check{}
	k.oneOf(field.NewPath("apiVersion"), c.APIVersion, APIVersion)
	k.oneOf(field.NewPath("kind"), c.Kind, Kind)
	switch {
	case c.ClusterID == "":
		k.add(field.Required(field.NewPath("clusterID"), "the name that tokens are signed for"))
	case len(c.ClusterID) > 256 || !regexp.MustCompile(`^[!-~]+$`).MatchString(c.ClusterID):
		k.add(field.Invalid(field.NewPath("clusterID"), c.ClusterID, "must be at most 256 visible characters of ASCII: it travels in a header"))
	}
	if c.AccountID != "" {
		k.account(field.NewPath("accountID"), c.AccountID)
	}
	c.Server.validate(k, field.NewPath("server"))
	k.oneOf(field.NewPath("backend"), c.Backend, BackendSTS, BackendMuster)
	switch {
	case c.Backend == BackendMuster && c.Muster == nil:
		k.add(field.Required(field.NewPath("muster"), "the backend muster needs the socket of the identity service, and a credential for it"))
	case c.Backend == BackendSTS && c.Muster != nil:
		k.add(field.Forbidden(field.NewPath("muster"), "set backend to muster, or leave this out"))
	case c.Backend == BackendMuster && c.EC2 != nil:
		k.add(field.Forbidden(field.NewPath("ec2"), "the backend muster knows its instances by itself"))
	}
	if c.Muster != nil {
		c.Muster.validate(k, field.NewPath("muster"))
	}
	c.validateSTS(k)
	c.validateEC2(k)
	c.Mapping.validate(k, field.NewPath("mapping"))
	c.validateTrusted(k)
	c.Cache.validate(k, field.NewPath("cache"))
	c.Limits.validate(k, field.NewPath("limits"))
	if c.AccessPolicies.Enabled && (c.Mapping.FileOnly || c.Mapping.Mode == ModeConfigMap) {
		k.add(field.Forbidden(field.NewPath("accessPolicies", "enabled"), "there are no access entries in this mode"))
	}
	if c.Server.MetricsAddress != "" && c.Mapping.FileOnly {
		k.add(field.Forbidden(field.NewPath("server", "metricsAddress"), "with mapping.fileOnly no API server is asked who may read metrics; clients with a certificate of clientCA get them at bindAddress"))
	}
	for n, account := range c.ScrubbedAccounts {
		k.account(field.NewPath("scrubbedAccounts").Index(n), account)
	}
	return k.errs
}

// validateMetrics checks where metrics are served and to whom.
func (s Server) validateMetrics(k *check, path *field.Path) {
	if s.MetricsAddress != "" {
		if _, err := netip.ParseAddrPort(s.MetricsAddress); err != nil {
			k.add(field.Invalid(path.Child("metricsAddress"), s.MetricsAddress, "must be an IP address and a port, such as 127.0.0.1:21364"))
		}
	} else if s.MetricsClientCA != "" {
		k.add(field.Forbidden(path.Child("metricsClientCA"), "metrics are served nowhere without metricsAddress"))
	}
	k.file(path.Child("metricsClientCA"), s.MetricsClientCA)
}

func (s Server) validate(k *check, path *field.Path) {
	bind, err := netip.ParseAddrPort(s.BindAddress)
	if err != nil {
		k.add(field.Invalid(path.Child("bindAddress"), s.BindAddress, "must be an IP address and a port, such as 127.0.0.1:21362"))
	} else if s.ClientCA == "" && !bind.Addr().Unmap().IsLoopback() {
		k.add(field.Required(path.Child("clientCA"), "an address other than loopback needs client certificates: name the authority of the API server's client certificate"))
	}
	if s.HealthAddress != None {
		if _, err := netip.ParseAddrPort(s.HealthAddress); err != nil {
			k.add(field.Invalid(path.Child("healthAddress"), s.HealthAddress, "must be an IP address and a port, such as 127.0.0.1:21363, or none"))
		}
	}
	s.validateMetrics(k, path)
	if s.Certificate == "" || s.Key == "" {
		k.add(field.Required(path.Child("stateDir"), "name the directory that `muster authenticator init` made, or certificate and key"))
	}
	k.file(path.Child("stateDir"), s.StateDir)
	k.file(path.Child("certificate"), s.Certificate)
	k.file(path.Child("key"), s.Key)
	k.file(path.Child("clientCA"), s.ClientCA)
	for n, a := range s.Audiences {
		if a == "" {
			k.add(field.Required(path.Child("audiences").Index(n), "an audience"))
		}
	}
}

func (m Muster) validate(k *check, path *field.Path) {
	switch {
	case m.Socket == "" && m.Address == "":
		k.add(field.Required(path.Child("socket"), "the socket of the identity service, or address"))
	case m.Socket != "" && m.Address != "":
		k.add(field.Forbidden(path.Child("address"), "the service is on a socket or at an address, and not both"))
	case m.Address != "":
		if host, port, err := net.SplitHostPort(m.Address); err != nil || host == "" || port == "" {
			k.add(field.Invalid(path.Child("address"), m.Address, "must be a host and a port, such as 10.0.0.1:8443"))
		}
	}
	k.file(path.Child("socket"), m.Socket)
	if m.CA == "" {
		k.add(field.Required(path.Child("ca"), "the file with the account's authority, by which the service is known"))
	}
	if m.Credential == "" {
		k.add(field.Required(path.Child("credential"), "the file with certificate and key: the service answers nobody without"))
	}
	k.file(path.Child("ca"), m.CA)
	k.file(path.Child("credential"), m.Credential)
	k.within(path.Child("staleAfter"), m.StaleAfter, 2*time.Second, 10*time.Minute)
}

func (c Configuration) validateSTS(k *check) {
	path := field.NewPath("sts")
	if _, err := c.Hosts(); err != nil {
		k.add(field.Invalid(path, c.Partition, err.Error()))
	}
	if c.STS.HostsOnly && len(c.STS.Hosts) == 0 {
		k.add(field.Required(path.Child("hosts"), "with hostsOnly there are no others"))
	}
	for _, host := range slices.Sorted(maps.Keys(c.STS.Endpoints)) {
		k.url(path.Child("endpoints").Key(host), c.STS.Endpoints[host])
	}
	if c.STS.Proxy != "" {
		k.url(path.Child("proxy"), c.STS.Proxy)
	}
	k.file(path.Child("ca"), c.STS.CA)
	k.within(path.Child("timeout"), c.STS.Timeout, 100*time.Millisecond, 25*time.Second) // API servers wait for 30 s
	k.between(path.Child("connections"), c.STS.Connections, 1, 4096)
}

func (c Configuration) validateEC2(k *check) {
	if c.EC2 == nil {
		return
	}
	path := field.NewPath("ec2")
	if c.EC2.Endpoint != "" {
		k.url(path.Child("endpoint"), c.EC2.Endpoint)
	}
	if c.EC2.PerSecond <= 0 || c.EC2.PerSecond > 1000 {
		k.add(field.Invalid(path.Child("perSecond"), c.EC2.PerSecond, "must be more than 0 and at most 1000"))
	}
	k.between(path.Child("burst"), c.EC2.Burst, 1, 1000)
	for n, p := range c.EC2.InstanceProfiles {
		at := path.Child("instanceProfiles").Index(n)
		if _, err := arn.Parse(p.ARN); err != nil {
			k.add(field.Invalid(at.Child("arn"), p.ARN, "must be arn:aws:iam::ACCOUNT:instance-profile/NAME"))
		}
		role, err := arn.Parse(p.Role)
		if _, _, ok := role.Role(); err != nil || !ok {
			k.add(field.Invalid(at.Child("role"), p.Role, "must be arn:aws:iam::ACCOUNT:role/NAME"))
		}
	}
}

func (m Mapping) validate(k *check, path *field.Path) {
	k.oneOf(path.Child("mode"), m.Mode, ModeConfigMap, ModeAPIAndConfigMap, ModeAPI)
	k.file(path.Child("file"), m.File)
	switch {
	case m.FileOnly && m.File == "":
		k.add(field.Required(path.Child("file"), "the only source there is"))
	case m.FileOnly && m.Mode == ModeAPI:
		k.add(field.Forbidden(path.Child("fileOnly"), "the mode API reads access entries alone"))
	case m.File != "" && m.Mode == ModeAPI:
		k.add(field.Forbidden(path.Child("file"), "the mode API reads access entries alone"))
	}
	for _, source := range slices.Sorted(maps.Keys(m.ReservedPrefixes)) {
		k.oneOf(path.Child("reservedPrefixes").Key(source), source, string(identity.SourceAccessEntry), string(identity.SourceIdentityMapping),
			string(identity.SourceAWSAuth), string(identity.SourceFile))
	}
	for _, problem := range validation.IsDNS1123Label(m.Namespace) {
		k.add(field.Invalid(path.Child("namespace"), m.Namespace, problem))
	}
}

func (c Cache) validate(k *check, path *field.Path) {
	k.within(path.Child("ttl"), c.TTL, time.Second, 15*time.Minute)
	k.within(path.Child("negativeTTL"), c.NegativeTTL, 100*time.Millisecond, time.Minute)
	k.within(path.Child("instanceMaxAge"), c.InstanceMaxAge, time.Second, 10*time.Minute)
	k.between(path.Child("size"), c.Size, 16, 1<<20)
	k.between(path.Child("negativeSize"), c.NegativeSize, 16, 1<<20)
	k.between(path.Child("rememberKeys"), c.RememberKeys, 16, 1<<20)
	k.between(path.Child("maxInstances"), c.MaxInstances, 16, 1<<20)
}

func (l Limits) validate(k *check, path *field.Path) {
	k.between(path.Child("known"), l.Known, 1, 4096)
	k.between(path.Child("unknown"), l.Unknown, 1, 4096)
	k.between(path.Child("perKey"), l.PerKey, 1, 4096)
	k.between(path.Child("queue"), l.Queue, 1, 1<<16)
	k.within(path.Child("wait"), l.Wait, 10*time.Millisecond, 25*time.Second)
}

// Hosts are the STS hosts that tokens may be made for.
func (c Configuration) Hosts() (ststoken.Hosts, error) {
	hosts, err := ststoken.NewHosts(c.Partition, c.STS.Regions, c.STS.Hosts)
	if c.STS.HostsOnly {
		hosts = hosts.Only()
	}
	return hosts, err
}

// Options are how mappings are read. The file must come from Read.
func (c Configuration) Options() identity.Options {
	o := identity.Options{
		Cluster: c.ClusterID, Mode: identity.Mode(c.Mapping.Mode), Partition: c.Partition, Account: c.AccountID, RolePatterns: c.Mapping.RolePatterns, Scrubbed: c.ScrubbedAccounts,
		PrincipalIDs: c.Backend == BackendMuster, // whose service fills them in
	}
	for _, t := range c.Mapping.TrustedSessionNames {
		role, _ := arn.Parse(t.Role) // the zero ARN is not a role, and nothing is trusted
		o.Trusted = append(o.Trusted, identity.TrustedSessions{Role: role, Names: t.Names})
	}
	if len(c.Mapping.ReservedPrefixes) > 0 {
		o.Reserved = map[identity.Source][]string{}
		for source, prefixes := range c.Mapping.ReservedPrefixes {
			o.Reserved[identity.Source(source)] = prefixes
		}
	}
	return o
}
