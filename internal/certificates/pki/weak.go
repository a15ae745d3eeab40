// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"
	"sync"
)

const (
	// fermatRounds is how many steps of Fermat's method a modulus has to withstand: the Baseline Requirements of the
	// CA/Browser Forum want at least 100 (6.1.1.3).
	fermatRounds = 110
	// mostSmallPrime is the largest prime that a modulus is divided by, as NIST SP 800-89, 5.3.3 has it.
	mostSmallPrime = 751
	// mostROCAPrime is the largest prime that divides M, which the broken generator made primes of, whatever the size
	// of the key.
	mostROCAPrime = 167
	// mostSmallScalar is the largest private key of an elliptic curve that is guessed.
	mostSmallScalar = 255
)

// weakRSA says how the private key of an RSA key can be found, nil if not by the ways that are known to have happened:
// a prime factor that is small, factors that are close to each other (CVE-2022-26320), and factors made by Infineon's
// RSALib (CVE-2017-15361, ROCA). Public authorities refuse the same; keys that were published, such as Debian's of
// 2008, are on no list here.
func weakRSA(k *rsa.PublicKey) error {
	switch {
	case k.N.BitLen()%8 != 0:
		return fmt.Errorf("the RSA key has %d bits, which is not a multiple of 8; make another with a size such as %d", k.N.BitLen(), minRSABits)
	case new(big.Int).GCD(nil, nil, k.N, smallPrimes()).Cmp(big.NewInt(1)) != 0:
		return fmt.Errorf("the RSA key has a prime factor of at most %d, so anybody can compute its private key; make another", mostSmallPrime)
	case closeFactors(k.N):
		return errors.New("the prime factors of the RSA key are so close to each other that anybody can compute its private key; make another")
	case fromRSALib(k.N):
		return errors.New("the RSA key was made by the broken generator of CVE-2017-15361 (ROCA), so its private key can be computed; make another elsewhere")
	}
	return nil
}

// closeFactors runs Fermat's method: N = a² - b² for an a that is a little above the root of N if the factors a+b and
// a-b are close.
func closeFactors(n *big.Int) bool {
	a := new(big.Int).Sqrt(n)
	rest := new(big.Int).Mul(a, a)
	if rest.Cmp(n) == 0 {
		return true
	}
	// rest is a² - N, and grows by 2a+1 when a grows by one.
	rest.Sub(rest, n)
	step, root, square := new(big.Int), new(big.Int), new(big.Int)
	for range fermatRounds {
		rest.Add(rest, step.Lsh(a, 1)).Add(rest, big.NewInt(1))
		a.Add(a, big.NewInt(1))
		if !maybeSquare(rest) {
			continue
		}
		if root.Sqrt(rest); square.Mul(root, root).Cmp(rest) == 0 {
			return true
		}
	}
	return false
}

// maybeSquare is false for most numbers that are not squares: roots of large numbers cost a hundred times as much. A
// square leaves one of 12 remainders when it is divided by 64, of 16 by 63 and of 21 by 65.
func maybeSquare(n *big.Int) bool {
	if low := n.Bits(); len(low) > 0 && !squares(64)[uint64(low[0])%64] {
		return false
	}
	remainder := new(big.Int).Mod(n, big.NewInt(63*65)).Uint64()
	return squares(63)[remainder%63] && squares(65)[remainder%65]
}

// squares holds the remainders of squares divided by m, for the three that are asked for.
func squares(m int) []bool { return squareTables()[m] }

var squareTables = sync.OnceValue(func() map[int][]bool {
	tables := map[int][]bool{}
	for _, m := range []int{63, 64, 65} {
		tables[m] = make([]bool, m)
		for i := range m {
			tables[m][i*i%m] = true
		}
	}
	return tables
})

// fromRSALib looks for the fingerprint of ROCA (Nemec et al., The Return of Coppersmith's Attack, CCS 2017, 4.1). Both
// factors are k·M + 65537^a mod M, where M is the product of the first primes; so modulo each of those the key is a
// power of 65537. Of all other keys 1 in 2^28 looks like that, too; its owner has to make another key.
func fromRSALib(n *big.Int) bool {
	for prime, powers := range rsaLibPowers() {
		if !powers[new(big.Int).Mod(n, big.NewInt(int64(prime))).Uint64()] {
			return false
		}
	}
	return true
}

var rsaLibPowers = sync.OnceValue(func() map[int][]bool {
	all := map[int][]bool{}
	for _, prime := range primesTo(mostROCAPrime) {
		all[prime] = make([]bool, prime)
		for power := 1; !all[prime][power]; power = power * 65537 % prime {
			all[prime][power] = true
		}
	}
	return all
})

var smallPrimes = sync.OnceValue(func() *big.Int {
	product := big.NewInt(1)
	for _, prime := range primesTo(mostSmallPrime) {
		product.Mul(product, big.NewInt(int64(prime)))
	}
	return product
})

func primesTo(most int) []int {
	var primes []int
	for n := 2; n <= most; n++ {
		if big.NewInt(int64(n)).ProbablyPrime(0) { // exact below 2^64
			primes = append(primes, n)
		}
	}
	return primes
}

// weakECDSA refuses keys whose private key is so small that anybody guesses it.
func weakECDSA(k *ecdsa.PublicKey) error {
	public, err := k.ECDH()
	if err != nil {
		return fmt.Errorf("the ECDSA key is not a point of its curve: %w", err)
	}
	if small, ok := smallScalars[public.Curve()]; ok && small()[abscissa(public)] {
		return fmt.Errorf("the private key of the ECDSA key is at most %d, which anybody guesses; make another", mostSmallScalar)
	}
	return nil
}

// abscissa is the same for a private key and its negative.
func abscissa(k *ecdh.PublicKey) string {
	point := k.Bytes() // 4, x, y
	return string(point[1 : 1+len(point)/2])
}

// smallScalars are the abscissas of guessed keys, made for a curve when the first key on it comes: P-521's take a tenth
// of a second.
var smallScalars = map[ecdh.Curve]func() map[string]bool{
	ecdh.P256(): sync.OnceValue(func() map[string]bool { return smallOn(ecdh.P256(), 32) }),
	ecdh.P384(): sync.OnceValue(func() map[string]bool { return smallOn(ecdh.P384(), 48) }),
	ecdh.P521(): sync.OnceValue(func() map[string]bool { return smallOn(ecdh.P521(), 66) }),
}

// smallOn finds them on a curve whose private keys have so many bytes.
func smallOn(curve ecdh.Curve, size int) map[string]bool {
	all := map[string]bool{}
	for scalar := 1; scalar <= mostSmallScalar; scalar++ {
		private := make([]byte, size)
		private[size-1] = byte(scalar)
		if k, err := curve.NewPrivateKey(private); err == nil {
			all[abscissa(k.PublicKey())] = true
		}
	}
	return all
}
