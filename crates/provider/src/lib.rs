//! libtrireme.so: the wsrep provider.
