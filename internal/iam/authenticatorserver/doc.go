// SPDX-License-Identifier: Apache-2.0

// Package authenticatorserver assembles the authenticator from its configuration file: the sources of mappings, the
// lease, the webhook.
package authenticatorserver
