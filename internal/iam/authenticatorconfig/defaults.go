// SPDX-License-Identifier: Apache-2.0

package authenticatorconfig

import "path"

// None is the address of health that switches it off.
const None = "none"

// The names of the files in a state directory.
const (
	CertificateFile = "certificate.pem"
	KeyFile         = "key.pem"
	ClientCAFile    = "client-ca.pem"
)

func (c *Configuration) setDefaults() {
	setDefault(&c.Partition, "aws")
	setDefault(&c.Backend, BackendSTS)
	setDefault(&c.Server.BindAddress, "127.0.0.1:21362")
	setDefault(&c.Server.HealthAddress, "127.0.0.1:21363")
	if dir := c.Server.StateDir; dir != "" {
		setDefault(&c.Server.Certificate, path.Join(dir, CertificateFile))
		setDefault(&c.Server.Key, path.Join(dir, KeyFile))
		setDefault(&c.Server.ClientCA, path.Join(dir, ClientCAFile))
	}
	setDefault(&c.STS.Timeout, "10s")
	setDefault(&c.STS.Connections, 64)
	if c.Muster != nil {
		setDefault(&c.Muster.StaleAfter, "3s")
	}
	if c.EC2 != nil {
		setDefault(&c.EC2.PerSecond, 5)
		setDefault(&c.EC2.Burst, 10)
	}
	setDefault(&c.Mapping.Mode, ModeAPIAndConfigMap)
	setDefault(&c.Mapping.Namespace, "muster-system")
	setDefault(&c.Cache.TTL, "1m")
	setDefault(&c.Cache.NegativeTTL, "10s")
	setDefault(&c.Cache.Size, 16384)
	setDefault(&c.Cache.NegativeSize, 2048)
	setDefault(&c.Cache.RememberKeys, 8192)
	setDefault(&c.Cache.MaxInstances, 16384)
	setDefault(&c.Cache.InstanceMaxAge, "30s")
	setDefault(&c.Limits.Known, 48)
	setDefault(&c.Limits.Unknown, 16)
	perKey := 4 // STS throttles who asks much
	if c.Backend == BackendMuster {
		perKey = 32
	}
	setDefault(&c.Limits.PerKey, perKey)
	setDefault(&c.Limits.Queue, 256)
	setDefault(&c.Limits.Wait, "2s")
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
