-- Makes a database with the server's tables a template for tests. In a copy, `pristine.restore()` restores the
-- template's rows, which is much faster than to create another copy.

CREATE SCHEMA pristine;

-- What a test must not have changed: tables with their columns, indexes, triggers and functions. The disk reserve stays:
-- creating it takes time.
CREATE FUNCTION pristine.schema() RETURNS text LANGUAGE sql AS $$
  SELECT md5(concat(
    (SELECT string_agg(concat(oid, relname, relkind, relnatts, relhastriggers), ',' ORDER BY oid)
       FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind <> 't' AND relname <> 'switchyard_reserve'),
    (SELECT string_agg(concat(oid, tgname, tgenabled), ',' ORDER BY oid) FROM pg_trigger),
    (SELECT string_agg(concat(oid, prosrc), ',' ORDER BY oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace),
    (SELECT string_agg(setconfig::text, ',') FROM pg_db_role_setting
       WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()))))
$$;

DO $$
DECLARE name text; has_rows boolean;
BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', name) INTO has_rows;
    IF has_rows THEN
      EXECUTE format('CREATE TABLE pristine.%I AS TABLE public.%I', name, name);
    END IF;
  END LOOP;
END $$;

-- Object ids are the same in every copy, so the digest is too.
CREATE TABLE pristine.digest AS SELECT pristine.schema() AS digest;

-- Returns false, and changes nothing, if the schema differs from the template's.
CREATE FUNCTION pristine.restore() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE name text; number oid; large text;
BEGIN
  -- Servers of the previous test may still have connections.
  FOR attempt IN 1..1000 LOOP
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid();
    EXIT WHEN NOT FOUND;
    PERFORM pg_stat_clear_snapshot(), pg_sleep(0.002);
  END LOOP;
  IF pristine.schema() <> (SELECT digest FROM pristine.digest) THEN
    RETURN false;
  END IF;
  -- For small tables, DELETE is faster than TRUNCATE, which creates new files. Large ones are truncated.
  SELECT string_agg(format('public.%I', relname), ', ') INTO large FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'switchyard_reserve'
      AND (pg_relation_size(oid) > 131072 OR pg_indexes_size(oid) > 1048576);
  IF large IS NOT NULL THEN
    EXECUTE 'TRUNCATE ' || large;
  END IF;
  FOR name, number IN SELECT relname, oid FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'switchyard_reserve'
      AND pg_relation_size(oid) > 0 LOOP
    EXECUTE format('DELETE FROM public.%I', name);
  END LOOP;
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'pristine' AND tablename <> 'digest' LOOP
    EXECUTE format('INSERT INTO public.%I SELECT * FROM pristine.%I', name, name);
  END LOOP;
  RETURN true;
END $$;
