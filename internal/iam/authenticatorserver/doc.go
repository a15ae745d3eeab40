// SPDX-License-Identifier: Apache-2.0

// Package authenticatorserver puts the authenticator together from its configuration file: the sources of mappings, the leases, the webhook.
package authenticatorserver
